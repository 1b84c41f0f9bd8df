"""A turn that is cancelled before any worker saw it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.wire import names
from kernel.wire.ids import turn_id_for
from store import sessions, turns
from tests.support.model_server import ModelServer
from tests.support.packages import STORY
from tests.support.rig import rig

pytestmark = pytest.mark.slow


async def test_a_turn_that_is_cancelled_before_it_opened_is_a_stop_too(tmp_path: Path) -> None:
    model = ModelServer()
    async with rig(tmp_path, packages={"tale": STORY}, model=model, start_worker=False) as r:
        async with r.polling():
            session = await r.session(packages=["tale"])
            await session.state()
        turn_id = turn_id_for(session.session_id, "a1")
        async with r.store.write() as conn:
            known = {"session_id": session.session_id, "turn_id": turn_id}
            await turns.accept_action(conn, action_id="a1", text="go", **known)
            opened = await sessions.lock(conn, session.session_id)
        # Nobody polls: the cancellation lies there before the turn's first task.
        turn = await r.client.start_workflow(
            names.TURN,
            {**known, "incarnation": opened.incarnation},
            id=session.turn(turn_id).id,
            task_queue=r.settings.temporal.queue,
        )
        await turn.cancel()
        async with r.polling():
            assert (await turn.result())["status"] == "stopped"
        async with r.store.read() as conn:
            stored = await turns.require_turn(conn, turn_id)
        assert stored.status == "stopped"
        model.assert_calls(0)
