"""Live text: seen while the model still speaks, replayed to who comes late, taken back on a new attempt."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store import messages
from store.stream import Piece, follow
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, story_with
from tests.support.rig import Rig, rig
from tests.turns.builders import Ag, calls, entry, package, tool

pytestmark = pytest.mark.slow


async def read(r: Rig, turn_id: str) -> list[Piece]:
    """The whole stream, to its end."""
    async with asyncio.timeout(15):
        return [piece async for piece in follow(r.store, turn_id)]


def shown(pieces: list[Piece]) -> str:
    """What a reader who obeys resets has on the screen at the end."""
    text = ""
    for piece in pieces:
        text = "" if piece.kind == "reset" else text + piece.text
    return text


async def test_the_first_words_are_seen_while_the_model_server_holds_its_last_chunk(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It rains on the town.", hold=True)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        async with asyncio.timeout(15):
            first = await anext(follow(r.store, receipt["turn_id"]))
        assert (first.kind, first.runtime_id) == ("text", "tale")
        assert first.text
        assert "It rains on the town.".startswith(first.text)
        assert model.held.is_set()
        assert (await session.state())["running"]["turn_id"] == receipt["turn_id"]
        model.release()
        assert (await session.result(receipt))["story"]["text"] == "It rains on the town."


async def test_two_readers_see_the_same_and_a_late_one_replays_it_all(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It rains on the town.", hold=True)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        readers = [asyncio.create_task(read(r, receipt["turn_id"])) for _ in range(2)]
        await asyncio.wait_for(model.held.wait(), 15)
        model.release()
        await session.result(receipt)
        late = await read(r, receipt["turn_id"])
        early = [await reader for reader in readers]
        assert [shown(pieces) for pieces in [*early, late]] == ["It rains on the town."] * 3


async def test_a_reader_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It rains on the town.", hold=True)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        async with asyncio.timeout(15):
            first = await anext(follow(r.store, receipt["turn_id"]))
        model.release()
        await session.result(receipt)
        rest = [piece async for piece in follow(r.store, receipt["turn_id"], after=first.offset)]
        assert first.text + "".join(piece.text for piece in rest) == "It rains on the town."


async def test_the_next_step_of_a_run_takes_back_what_the_one_before_said(tmp_path: Path) -> None:
    files = story_with("{plugin: [look]}", entry(tool("look", "return 1")), "  tools: [look]\n")
    model = ModelServer([Reply(text="Let me see.", tool_calls=calls("look")), Reply(text="A cat.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        pieces = await read(r, result["turn_id"])
        assert [piece.kind for piece in pieces].count("reset") == 1
        assert shown(pieces) == "A cat." == result["story"]["text"]


async def test_another_attempt_of_the_provider_is_another_attempt_of_the_stream(tmp_path: Path) -> None:
    model = ModelServer([Reply(status=503, body="{}"), Reply(text="It rains.")])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        pieces = await read(r, result["turn_id"])
        assert shown(pieces) == "It rains."
        assert {piece.attempt for piece in pieces if piece.text} == {102}


async def test_a_story_that_has_shown_text_is_not_tried_again_and_rejects(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It rains on the town.", cut_after=3), Reply(text="Never asked for.")])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert result["status"] == "rejected"
        assert result["reason"].startswith("model.")
        r.model.assert_calls(1)
        assert (await read(r, result["turn_id"]))[-1].kind == "text"  # the stream has an end


async def test_agents_that_do_not_tell_the_story_stream_nothing(tmp_path: Path) -> None:
    work = package(a=Ag("{stage: pre-turn}"))
    async with rig(tmp_path, packages={"work": work}, model=ModelServer([Reply(text="Secret.")])) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert await read(r, result["turn_id"]) == []


async def test_the_stream_of_a_stopped_turn_ends(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It rains on the town.", hold=True)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        await asyncio.wait_for(model.held.wait(), 15)
        await session.update("control", {"action": "cancel-turn"})
        await session.result(receipt)
        await read(r, receipt["turn_id"])


@pytest.mark.parametrize(("letters", "whole"), [(8 * 1024, True), (8 * 1024 + 1, False)])
async def test_the_result_carries_the_story_up_to_eight_kib_and_an_outline_beyond(
    tmp_path: Path, letters: int, whole: bool
) -> None:
    text = "x" * letters
    async with rig(tmp_path, packages={"tale": STORY}, model=ModelServer([Reply(text=text)])) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        story = result["story"]
        assert story.get("complete", True) is whole
        async with r.store.read() as conn:
            kept = (await messages.list_all(conn, session.session_id))[-1]
        assert kept.text == text
        if whole:
            assert story["text"] == text
        else:
            assert len(story["text"]) <= 300
            assert story["message_id"] == str(kept.position)
