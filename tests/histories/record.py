"""Records the histories that CI replays, and the digest that names them.

    python -m tests.histories.record --reason "Turns read their clock from the store"

A history may be replaced until 0.1.0, with a line in the CHANGELOG (docs/decisions.md, 25b): this writes
the histories, `digests.json` and that line. From then on a workflow change patches, and a new history is
recorded beside the old ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    UnsandboxedWorkflowRunner,
    Worker,
)

import worker
from kernel.wire import names
from kernel.wire.ids import agent_workflow, job_workflow
from link import dev_server
from link.connect import identity
from link.exit import leave
from link.interceptors import WireInterceptor
from tests.histories import digests
from tests.running.guide import PACKAGE, STORY, approvals, guide, marks
from tests.support.model_server import ModelServer, Reply
from tests.support.rig import Rig, SessionDriver, rig

RENEW_AFTER = 60
"""Events after which the recording server suggests to continue as new."""

_ATTEMPTS = 20


async def record() -> dict[str, str]:
    """Play the reference turns; the histories by name, as JSON."""
    with tempfile.TemporaryDirectory() as home:
        async with _server(Path(home)) as address:
            sessions = await _record_session(Path(home) / "session", address)
            one_task = await _record_one_task(Path(home) / "one-task", address)
    return {name: _plain(history) for name, history in {**sessions, **one_task}.items()}


async def _record_session(home: Path, address: str) -> dict[str, WorkflowHistory]:
    """A session with an approval, a job, controls and a continue-as-new; its first turn, agent and job."""
    script = [marks(), Reply(text="It rains."), *[Reply(text="It still rains.", times=0)]]
    async with rig(
        home, packages={PACKAGE: guide()}, model=ModelServer(script), TURNWRIGHT_ADDRESS=address
    ) as r:
        session = await r.session("reference", packages=[PACKAGE])
        first = await _first_turn(session)
        await session.update(names.CONTROL, {"action": "pause"})
        await session.update(names.INTERJECT, {"interjection_id": "i1", "text": "Slower."})
        await session.update(names.CONFIGURE, {"locale": "de"})
        await session.update(names.CONTROL, {"action": "resume"})
        while await _run_id(session.handle) == session.handle.first_execution_run_id:
            await session.play("I wait.")
            await session.until(lambda state: not state["jobs"])
        await session.play("I wait once more.")
        await session.update(names.CONTROL, {"action": "end"})
        await session.handle.result()
        return {
            **await _runs(r, session),
            "turn": await _history(r, first["workflow_id"]),
            "agent": await _history(r, agent_workflow(first["turn_id"], STORY)),
            "job": await _history(r, job_workflow(first["job_id"])),
        }


async def _runs(r: Rig, session: SessionDriver) -> dict[str, WorkflowHistory]:
    """Every run of a session, from the first on."""
    found: dict[str, WorkflowHistory] = {}
    run_id = session.handle.first_execution_run_id or ""
    while run_id:
        history = await _history(r, session.handle.id, run_id)
        found[f"session-{len(found) + 1}"] = history
        end = history.events[-1].workflow_execution_continued_as_new_event_attributes
        run_id = end.new_execution_run_id
    return found


async def _first_turn(session: SessionDriver) -> dict[str, Any]:
    """A turn whose tool call a person approves by signal, and its job."""
    receipt = await session.submit("I look up.", action_id="a1")
    [ref] = await approvals(session)
    await session.handle.signal(names.RESOLVE, {"ref": ref, "decision": "approve", "actor": "ann"})
    result = await session.result(receipt)
    await session.until(lambda state: not state["jobs"])
    return {**receipt, "job_id": result["jobs"][0]["job_id"]}


async def _record_one_task(home: Path, address: str) -> dict[str, WorkflowHistory]:
    """A session in whose one task a signal, an update and the end of an activity meet (catalogue F8)."""
    async with rig(home, start_worker=False, TURNWRIGHT_ADDRESS=address) as r, AsyncExitStack() as stack:
        leaf, _ = worker.activities(await worker.assemble(r.settings, stack))
        for number in range(_ATTEMPTS):
            history = await _play_one_task(r, f"one-task-{number}", leaf)
            if digests.meets_in_one_task(history):
                return {"one-task": history}
    raise RuntimeError(f"in {_ATTEMPTS} attempts the three never met in one task")


async def _play_one_task(r: Rig, session_id: str, leaf: list[Any]) -> WorkflowHistory:
    """While no worker takes workflow tasks, all three arrive; then one comes."""
    gate = _Gate()
    common: dict[str, Any] = {"task_queue": r.settings.temporal.queue, "activities": leaf}

    def orders() -> Worker:
        return Worker(
            r.client,
            workflows=[worker.SessionWorkflow],
            interceptors=[WireInterceptor()],
            workflow_runner=UnsandboxedWorkflowRunner(),
            no_remote_activities=True,
            **common,
        )

    async with Worker(r.client, interceptors=[gate, WireInterceptor()], **common):
        async with orders():
            session = await r.session(session_id, packages=[])
            await session.until(lambda state: state["status"] == "active")
            await session.update(names.CONFIGURE, {"locale": "de"})
            await gate.reached.wait()
        await session.handle.signal(names.INTERJECT, {"interjection_id": "i1", "text": "Slower."})
        update = asyncio.create_task(
            session.update(names.INTERJECT, {"interjection_id": "i2", "text": "Faster."})
        )
        gate.open.set()
        await gate.passed.wait()
        async with orders():
            await update
            await session.update(names.CONTROL, {"action": "end"})
            await session.handle.result()
    return await _history(r, session.handle.id)


class _Gate(Interceptor):
    """Holds `configure_session` until it is opened."""

    def __init__(self) -> None:
        self.reached, self.open, self.passed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        gate = self

        class Held(ActivityInboundInterceptor):
            async def execute_activity(self, input: ExecuteActivityInput) -> Any:
                result = await super().execute_activity(input)
                if input.fn.__name__ == names.CONFIGURE_SESSION:
                    gate.reached.set()
                    await gate.open.wait()
                    gate.passed.set()
                return result

        return Held(next)


@asynccontextmanager
async def _server(home: Path) -> AsyncIterator[str]:
    """A server of its own that suggests to continue as new early."""
    tuned = dev_server.dynamic_config_flags
    key = "limit.historyCount.suggestContinueAsNew"
    early = [*tuned(), "--dynamic-config-value", f"{key}={RENEW_AFTER}"]
    async with AsyncExitStack() as stack:
        dev_server.dynamic_config_flags = lambda: early
        stack.callback(setattr, dev_server, "dynamic_config_flags", tuned)
        server = await stack.enter_async_context(
            await dev_server.start_dev_server(home / "server", ui=False, in_memory=True)
        )
        yield server.address


async def _run_id(handle: WorkflowHandle[Any, Any]) -> str:
    return (await handle.describe()).run_id


async def _history(r: Rig, workflow_id: str, run_id: str | None = None) -> WorkflowHistory:
    client: Client = r.client
    return await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()


def _plain(history: WorkflowHistory) -> str:
    """JSON without the name of the machine that recorded it."""
    tree = {"workflow_id": history.workflow_id, "history": history.to_json_dict()}
    text = json.dumps(tree, indent=1, ensure_ascii=False)
    text = text.replace(identity(), "recorder").replace(socket.gethostname(), "recorder")
    return re.sub(r'"identity": "[^"]*"', '"identity": "recorder"', text) + "\n"


def main() -> None:
    """Record, and write what names the recording."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories.record", description=__doc__)
    parser.add_argument("--reason", required=True, help="why the workflows' behaviour changed")
    reason = parser.parse_args().reason
    print(digests.write(asyncio.run(record()), reason))
    leave(0)


if __name__ == "__main__":
    main()
