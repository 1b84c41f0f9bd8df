"""The language of a session decides which instructions its agents read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY
from tests.support.rig import rig
from tests.turns.builders import asked

FILES = {**STORY, "PLUGIN.zh.md": "---\n---\n讲一个故事。\n"}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en", "Tell the story."),
        ("zh-Hans", "讲一个故事。"),
        ("zh-CN", "讲一个故事。"),
        ("zh-Hant", "Tell the story."),
    ],
)
async def test_an_agent_reads_its_instructions_in_the_language_of_the_session(
    tmp_path: Path, locale: str, said: str
) -> None:
    model = ModelServer([Reply(text="So it is.", times=0)])
    async with rig(tmp_path, packages={"tale": FILES}, model=model) as r:
        session = await r.session(packages=["tale"], locale=locale)
        assert (await session.play("I wait."))["status"] == "committed"
        assert said in asked(r, 1)[0]["content"]
