"""What is repeated, and what is not: a lost database is, a defect and a refusal are told at once."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY
from tests.support.rig import rig
from tests.turns.builders import until

pytestmark = pytest.mark.slow


class Failing(Interceptor):
    """Lets an activity fail before its body, this often."""

    def __init__(self, name: str, error: Exception, times: int) -> None:
        self.name, self.error, self.left = name, error, times
        self.executions: Counter[str] = Counter()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Failing(next, self)


class _Failing(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, plan: Failing) -> None:
        super().__init__(next)
        self._plan = plan

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        plan, name = self._plan, input.fn.__name__
        plan.executions[name] += 1
        if name == plan.name and plan.left:
            plan.left -= 1
            raise plan.error
        return await super().execute_activity(input)


@pytest.mark.parametrize("activity", ["open_turn", "call_model", "commit_turn"])
async def test_what_failed_on_the_way_is_repeated(activity: str, tmp_path: Path) -> None:
    failing = Failing(activity, ConnectionError("the database is away"), times=2)
    model = ModelServer([Reply(text="It rains.")])
    async with rig(tmp_path, packages={"tale": STORY}, model=model, interceptors=(failing,)) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("I look up."))["status"] == "committed"
        assert failing.executions[activity] == 3
        r.model.assert_calls(1)


async def test_a_defect_in_a_store_write_is_told_and_holds_nobody_up(tmp_path: Path) -> None:
    failing = Failing("accept_action", KeyError("defect"), times=1)
    model = ModelServer([Reply(text="It rains.")])
    async with rig(tmp_path, packages={"tale": STORY}, model=model, interceptors=(failing,)) as r:
        session = await r.session(packages=["tale"])
        await session.submit("I look up.")
        state = await session.until(lambda state: state["notices"])
        assert "defect" in state["notices"][0]["message"]
        assert state["queue"] == []
        assert failing.executions["accept_action"] == 1
        assert (await session.play("Again."))["status"] == "committed"


async def test_a_database_file_that_was_moved_away_is_waited_for(tmp_path: Path) -> None:
    watching = Failing("accept_action", ConnectionError(), times=0)
    model = ModelServer([Reply(text="It rains.", times=0)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model, interceptors=(watching,)) as r:
        session = await r.session(packages=["tale"])
        await session.play("I look around.")
        file, aside = r.settings.store_url.removeprefix("sqlite:///"), tmp_path / "aside.db"
        os.rename(file, aside)
        receipt = await session.submit("I look up.")
        await until(lambda: asyncio.sleep(0, watching.executions["accept_action"]), lambda tries: tries > 3)
        os.rename(aside, file)
        assert (await session.result(receipt))["status"] == "committed"
        assert (await session.state())["notices"] == []
