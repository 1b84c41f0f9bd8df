"""One worker process: settings → client → store → catalog → Workers, until a signal.

python -m worker        reads `turnwright.toml` and the environment, polls until SIGTERM or SIGINT
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.common import VersioningBehavior
from temporalio.worker import (
    Interceptor,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerDeploymentConfig,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

if sys.platform != "win32":
    import uvloop

from activities.agents import AgentActivities
from activities.catalog import Catalog
from activities.commits import CommitActivities
from activities.configuring import Configuring
from activities.following import Following
from activities.functions import FunctionActivities
from activities.generations import Generations
from activities.jobs import JobActivities
from activities.models import WIRES
from activities.models.http import close_shared_transport
from activities.models.paid import ModelCalls
from activities.models.slots import Slot, load_slots
from activities.network import Network
from activities.plugins.child.code import Isolation
from activities.sessions import SessionActivities
from activities.tools import ToolActivities
from activities.transcripts import Transcripts
from activities.turns import TurnActivities
from kernel.errors import Code, TurnwrightError
from kernel.manifest.versions import PRODUCT_VERSION
from kernel.wire import names
from link import deployment, logs
from link.attributes import ensure_attributes
from link.bundled import bundled
from link.connect import connect, identity
from link.exit import leave
from link.interceptors import WireInterceptor
from link.queries import QueriesLast
from link.settings import Settings, load_settings
from store.contents import contents
from store.engine import Store
from workflows.agent import AgentWorkflow
from workflows.job import JobWorkflow
from workflows.session import SessionWorkflow
from workflows.turn import TurnWorkflow

READY_VARIABLE = "TURNWRIGHT_WORKER_READY_FILE"
"""Names a file that is written once the worker polls; whoever started it waits for that."""

HEARTBEAT_THROTTLE = timedelta(milliseconds=500)
STICKY_TIMEOUT = timedelta(seconds=2)
GRACE = 2 * HEARTBEAT_THROTTLE
"""What running activities get to finish once the worker must stop; a longer one goes on elsewhere."""

PASSED_THROUGH = (
    "kernel",
    "link",
    "pydantic",
    "pydantic_core",
    "jsonschema",
    "jsonschema_rs",
    "referencing",
    "rpds",
    "rfc8785",
    "re2",
    "_re2",
    "attrs",
    "attr",
)

_log = logging.getLogger("turnwright.worker")


@dataclass(frozen=True)
class Parts:
    """What the activities share."""

    settings: Settings
    client: Client
    store: Store
    catalog: Catalog
    configuring: Configuring
    slots: dict[str, Slot]
    network: Network
    following: Following | None = None


def main(start: Callable[[Settings], Coroutine[Any, Any, None]] | None = None) -> None:
    """Run until a signal, and leave with a status of our own; `start` is `run` where none is given."""
    logs.begin("INFO")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per model call hides everything else
    try:
        _run((start or run)(load_settings()))
    except TurnwrightError as error:
        logs.refuse(error)
        leave(1)
    except KeyboardInterrupt:
        leave(130)
    leave(0)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one: a turn then takes about a tenth less time."""
    if sys.platform == "win32":
        asyncio.run(work)
    else:
        uvloop.run(work)


async def run(
    settings: Settings, interceptors: tuple[Interceptor, ...] = (), trusted: Sequence[Path] = ()
) -> None:
    """Poll until SIGTERM or SIGINT; running activities get a moment to finish or to be handed on.

    Args:
        interceptors: further worker interceptors, innermost last.
        trusted: see `assemble`.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        parts = await assemble(settings, stack, trusted)
        workers = build_workers(parts, interceptors)
        for worker in workers:
            await stack.enter_async_context(worker)
        await _tell_current(parts, [worker.task_queue for worker in workers])
        _settle_memory()
        _announce(settings)
        await stop.wait()
        _log.info("shutting down")
        await asyncio.gather(*(worker.shutdown() for worker in workers))  # one grace for all of them


async def assemble(settings: Settings, stack: AsyncExitStack, trusted: Sequence[Path] = ()) -> Parts:
    """Connect, open the store, find the packages; whatever is missing is named at once.

    Args:
        trusted: folders whose packages run in this process, as the bundled ones do; no setting leads here.
    """
    for folder in settings.packages.path:
        if not folder.is_dir():
            raise TurnwrightError(
                Code.CONFIG_INVALID,
                f"there is no folder {folder}",
                where="packages.path",
                accepted="folders that exist",
            )
    slots = load_slots(settings.slots)
    for name, slot in slots.items():
        if problem := slot.key_problem():
            _log.warning("slot %s: %s; every call to it fails with %s", name, problem, Code.MODEL_AUTH)
    store = await Store.open(settings.store_url)
    stack.push_async_callback(store.close)
    stack.push_async_callback(close_shared_transport)
    network = Network(**settings.network.model_dump())
    stack.push_async_callback(network.close)
    client = await connect(settings)
    await ensure_attributes(client)
    isolation = Isolation(settings.isolation.minimum, settings.isolation.memory_mib * 1024 * 1024)
    catalog = Catalog(
        store,
        contents(store, settings.packages.store),
        bundled("plugins"),
        settings.package_folders,
        settings.home / "cache" / "packages",
        isolation=isolation,
        follows=settings.packages.watch,
        trusted=trusted,
    )
    stack.push_async_callback(catalog.close)
    configuring = Configuring(store, catalog, slots)
    following = await _follow(settings, catalog, configuring, stack) if settings.packages.watch else None
    return Parts(settings, client, store, catalog, configuring, slots, network, following)


async def _follow(
    settings: Settings, catalog: Catalog, configuring: Configuring, stack: AsyncExitStack
) -> Following:
    """Watch the package folders until the stack ends."""
    following = Following(catalog, configuring, settings.package_folders)
    await following.take()
    watching = asyncio.create_task(following.watch())
    stack.callback(watching.cancel)
    return following


def build_workers(parts: Parts, interceptors: tuple[Interceptor, ...] = ()) -> list[Worker]:
    """The workers of this process, by its roles and deployment."""
    settings, queue = parts.settings, parts.settings.temporal.queue
    leaf, functions = activities(parts)
    shared = _options(settings, interceptors)
    versioned = settings.deployment.name is not None
    turn_classes: list[type] = [TurnWorkflow, AgentWorkflow, JobWorkflow]
    families: dict[str, list[type]] = {queue: [SessionWorkflow, *turn_classes]}
    if versioned:
        families = {queue: [SessionWorkflow], names.turns_queue(queue): turn_classes}
    workers = []
    for name, classes in families.items():
        version = _versioning(settings, pinned=SessionWorkflow not in classes)
        if "workflows" in settings.worker.roles:
            workers.append(
                Worker(parts.client, task_queue=name, workflows=classes, activities=leaf, **version, **shared)
            )
        if "functions" in settings.worker.roles and TurnWorkflow in classes:
            workers.append(
                Worker(
                    parts.client,
                    task_queue=names.functions_queue(name),
                    activities=functions,
                    **version,
                    **shared,
                )
            )
    return workers


def activities(parts: Parts) -> tuple[list[Any], list[Any]]:
    """Every activity: those of the workflow queue, and function runtimes."""
    settings, store = parts.settings, parts.store
    generations, transcripts = Generations(store, parts.catalog), Transcripts()
    models = ModelCalls(store, parts.slots, WIRES)
    turns_queue = names.turns_queue(settings.temporal.queue) if settings.deployment.name else None
    sessions = SessionActivities(store, parts.configuring, turns_queue=turns_queue)
    turns = TurnActivities(
        store,
        generations,
        approval_deadline_ms=settings.approvals.deadline_s * 1000,
        following=parts.following,
    )
    commits = CommitActivities(store, generations)
    leaf = [
        sessions.open_session,
        sessions.configure_session,
        sessions.close_session,
        sessions.accept_action,
        sessions.withdraw_action,
        sessions.record_approval,
        sessions.record_interjection,
        turns.open_turn,
        AgentActivities(store, generations, models, transcripts).call_model,
        ToolActivities(store, generations, transcripts).run_tool,
        commits.commit_turn,
        commits.commit_job,
        JobActivities(store, parts.client).reconcile_jobs,
    ]
    return leaf, [FunctionActivities(store, generations, models, parts.network).run_function]


def _options(settings: Settings, interceptors: tuple[Interceptor, ...]) -> dict[str, Any]:
    limits = settings.worker
    return {
        "identity": identity(),
        "interceptors": [WireInterceptor(), *interceptors],
        "workflow_runner": _runner(settings),
        "max_concurrent_workflow_tasks": limits.max_concurrent_workflow_tasks,
        "max_concurrent_activities": limits.max_concurrent_activities,
        "max_concurrent_local_activities": limits.max_concurrent_local_activities,
        "max_cached_workflows": limits.max_cached_workflows,
        "max_heartbeat_throttle_interval": HEARTBEAT_THROTTLE,
        "default_heartbeat_throttle_interval": HEARTBEAT_THROTTLE,
        "sticky_queue_schedule_to_start_timeout": STICKY_TIMEOUT,
        "graceful_shutdown_timeout": GRACE,
        # An update past the SDK's own limit would else be echoed, refused and retried while its client waits.
        "disable_payload_error_limit": True,
    }


def _runner(settings: Settings) -> WorkflowRunner:
    """Workflow code is closed and lint-held, so production saves the sandbox's cost; tests do not."""
    if not settings.worker.sandbox:
        return QueriesLast(UnsandboxedWorkflowRunner())
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    return QueriesLast(SandboxedWorkflowRunner(restrictions=restrictions))


def _versioning(settings: Settings, *, pinned: bool) -> dict[str, Any]:
    version = deployment.version_of(settings.deployment)
    if version is None:
        # Else the SDK hashes every loaded module at start, and its long hash stands in half of all events.
        return {"build_id": PRODUCT_VERSION}
    behavior = VersioningBehavior.PINNED if pinned else VersioningBehavior.AUTO_UPGRADE
    return {
        "deployment_config": WorkerDeploymentConfig(
            version=version, use_worker_versioning=True, default_versioning_behavior=behavior
        )
    }


async def _tell_current(parts: Parts, queues: list[str]) -> None:
    """Make this worker's version the current one where that is asked for; else say when it is not."""
    version = deployment.version_of(parts.settings.deployment)
    if version is None:
        return
    if parts.settings.deployment.set_current:
        await deployment.set_current(parts.client, version, queues)
    if problem := await deployment.not_current(parts.client, version):
        _log.warning("%s", problem)


def _settle_memory() -> None:
    """Take what was loaded so far out of the garbage collector's sight: it stays until the process ends."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _announce(settings: Settings) -> None:
    _log.info("ready %s on %s", identity(), settings.temporal.queue)
    if file := os.environ.get(READY_VARIABLE):
        Path(file).write_text(identity(), encoding="utf-8")


if __name__ == "__main__":
    main()
