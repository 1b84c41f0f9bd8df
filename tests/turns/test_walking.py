"""A turn, from the player's words to what is committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import messages
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY
from tests.support.rig import rig

pytestmark = pytest.mark.slow


async def test_a_story_is_told_committed_and_returned(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": STORY}, model=ModelServer([Reply(text="It rains.")])) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("I look up.")
        assert result["status"] == "committed"
        assert result["story"] == {"runtime_id": "tale", "text": "It rains."}
        async with r.store.read() as conn:
            said = [(m.role, m.text) for m in await messages.list_all(conn, session.session_id)]
        assert said == [("player", "I look up."), ("story", "It rains.")]
        r.model.assert_calls(1)
