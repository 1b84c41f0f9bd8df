"""Turns as the client tells of them, against a real session."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError

from client.api import Turnwright
from client.commands.turns import record_lines
from kernel.errors import Code, TurnwrightError
from kernel.wire.session import Receipt
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function
from tests.support.rig import rig

pytestmark = pytest.mark.slow


async def test_a_turn_whose_workflow_failed_or_was_terminated_is_not_running(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="Rain.", hold=True)])
    async with (
        rig(tmp_path, packages={"tale": STORY}, model=model) as r,
        await Turnwright.connect(r.settings) as turnwright,
    ):
        session = await r.session(packages=["tale"])
        held, queued = await session.submit("I wait."), await session.submit("I go.")
        await model.held.wait()
        assert (await turnwright.graph(held["turn_id"])).status == "running"
        assert (await turnwright.turn(held["turn_id"])).status == "running"
        assert (await turnwright.turn(queued["turn_id"])).status == "waiting"
        await session.update("control", {"action": "cancel-turn", "turn_id": queued["turn_id"]})
        await session.turn(held["turn_id"]).terminate("by a test")
        failing = await session.update("run", {"action_id": "q", "runtime_id": "tale/nobody"})
        with pytest.raises(TurnwrightError) as failed:
            await turnwright.wait(Receipt.model_validate(failing))
        assert failed.value.code == Code.RUNTIME_UNKNOWN
        for receipt, status in ((held, "terminated"), (failing, "failed")):
            assert (await turnwright.graph(receipt["workflow_id"])).status == status
            record = await turnwright.turn(receipt["turn_id"])
            assert record.status == status
            assert record_lines(record)[0].endswith(f": {status}")


async def test_a_session_that_did_not_open_is_told_by_what_it_failed_with(tmp_path: Path) -> None:
    broken = function("return {}") | {"handler.py": "from .gone import handler"}
    async with (
        rig(tmp_path, packages={"tale": STORY, "broken": broken}) as r,
        await Turnwright.connect(r.settings) as turnwright,
    ):
        good, bad = await r.session(packages=["tale"]), await r.session(packages=["broken"])
        await turnwright.require_alive(good.session_id)
        with pytest.raises(WorkflowFailureError):
            await bad.handle.result()
        with pytest.raises(TurnwrightError) as refused:
            await turnwright.require_alive(bad.session_id)
        assert refused.value.code == Code.PACKAGE_LOAD
