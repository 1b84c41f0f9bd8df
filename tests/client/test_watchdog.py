"""Calls that nobody answers are diagnosed, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client, Interceptor, OutboundInterceptor, StartWorkflowUpdateInput
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from client import doctor, watchdog
from client.api import Turnwright
from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from kernel.wire.session import Receipt
from tests.support.temporal import link_settings

pytestmark = pytest.mark.slow


@workflow.defn(name=names.SESSION)
class BrokenSession:
    """A session whose every workflow task fails."""

    @workflow.run
    async def run(self, _input: dict[str, object]) -> None:
        raise RuntimeError("broken on purpose")


class Sending(Interceptor):
    """Tells when an update goes out."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        begun = self.begun

        class Noting(OutboundInterceptor):
            async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> Any:
                begun.set()
                return await super().start_workflow_update(input)

        return Noting(next)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Turnwright]:
    async with await Turnwright.connect(link_settings(tmp_path)) as connected:
        yield connected


async def refused(call: Awaitable[object]) -> TurnwrightError:
    """The named error of a call that nobody answers."""
    with pytest.raises(TurnwrightError) as caught:
        await call
    return caught.value


async def test_a_session_without_a_worker_names_the_queue(client: Turnwright, tmp_path: Path) -> None:
    error = await refused(client.new_session(tmp_path.name))
    assert error.code == Code.WORKER_ABSENT
    assert client.settings.temporal.queue in error.message
    assert error.where == f"session/{tmp_path.name}"
    again = await refused(client.new_session(tmp_path.name))
    assert again.code == Code.SESSION_EXISTS
    submitted = await refused(client.submit(tmp_path.name, "I wait."))
    assert submitted.code == Code.WORKER_ABSENT


async def test_a_session_whose_tasks_fail_is_stuck_with_its_cause(client: Turnwright, tmp_path: Path) -> None:
    queue = client.settings.temporal.queue
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client.temporal, task_queue=queue, workflows=[BrokenSession], workflow_runner=runner):
        error = await refused(client.new_session(tmp_path.name))
        assert error.code == Code.WORKFLOW_STUCK
        assert "broken on purpose" in error.message
        submitted = await refused(client.submit(tmp_path.name, "I wait."))
        assert submitted.code == Code.WORKFLOW_STUCK
        findings = await doctor.examine(client.settings)
    stuck = [one for one in findings if one.subject == "stuck" and tmp_path.name in one.message]
    assert stuck
    assert doctor.wrong(findings)


@pytest.mark.parametrize(
    "call", ["state", "submit", "run", "control", "resolve", "signal", "interject", "set"]
)
async def test_an_unknown_session_is_named(client: Turnwright, call: str) -> None:
    calls: dict[str, Awaitable[object]] = {
        "state": client.state("nobody"),
        "submit": client.submit("nobody", "hello"),
        "run": client.run("nobody", "dice"),
        "control": client.control("nobody", "end"),
        "resolve": client.resolve("a1", "approve", session_id="nobody"),
        "signal": client.resolve_by_signal("a1", "approve", session_id="nobody"),
        "interject": client.interject("nobody", "hurry"),
        "set": client.configure("nobody", locale="de"),
    }
    chosen = calls.pop(call)
    for other in calls.values():
        other.close()  # type: ignore[attr-defined]
    error = await refused(chosen)
    assert (error.code, error.where) == (Code.SESSION_UNKNOWN, "session/nobody")


async def test_an_unknown_turn_is_named(client: Turnwright) -> None:
    assert (await refused(client.graph("t0"))).code == Code.TURN_UNKNOWN
    receipt = Receipt(turn_id="t0", workflow_id="turn/nobody/t0", position=0)
    assert (await refused(client.wait(receipt))).code == Code.SESSION_UNKNOWN


async def test_an_ended_session_is_named_with_its_cause(client: Turnwright, tmp_path: Path) -> None:
    await refused(client.new_session(tmp_path.name))
    await client.temporal.get_workflow_handle(f"session/{tmp_path.name}").terminate("for the test")
    error = await refused(client.submit(tmp_path.name, "I wait."))
    assert error.code == Code.SESSION_ENDED
    assert "terminated" in error.message


async def test_a_missing_store_is_told_only_where_it_is_needed(client: Turnwright) -> None:
    assert await client.sessions() is not None
    assert (await refused(client.inbox())).code == Code.STORE_NOT_MIGRATED


async def test_a_queue_that_nobody_polls_is_seen(client: Turnwright) -> None:
    assert not await watchdog.polled(client.temporal, client.settings.temporal.queue)


async def test_a_cancelled_call_ends_at_once(client: Turnwright, tmp_path: Path) -> None:
    """The SDK turns the cancellation of an update into an error of its own."""
    await refused(client.new_session(tmp_path.name))
    sending = Sending()
    temporal = Client(**{**client.temporal.config(), "interceptors": [sending]})
    watched = Turnwright(client.settings, temporal, client.history)
    call = asyncio.create_task(watched.submit(tmp_path.name, "I wait."))
    await sending.begun.wait()
    call.cancel()
    async with asyncio.timeout(3):
        with pytest.raises(asyncio.CancelledError):
            await call
