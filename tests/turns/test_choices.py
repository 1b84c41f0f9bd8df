"""What a session chose reaches its turns from the next one on: providers, exclusions, settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kernel.wire import names
from store import switches
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function, story_with
from tests.support.rig import Files, SessionDriver, rig
from tests.turns.builders import OK, answers, asked, calls, entry, meet, nodes, records, tool, until

pytestmark = pytest.mark.slow

GIVES = "  io: { output: { contract: word@1 } }\n"
NOTES = "contributes:\n  data:\n    said: {}\n"
TAKES = "  io: { inputs: { word: { from: { contract: word@1 }, required: true } } }\n"


def gives(word: str) -> Files:
    return function(f'return {{"outcome": "success", "value": {{"word": "{word}"}}}}', extra=GIVES)


def takes() -> Files:
    body = 'await ctx.plugin_data.set("said", "last", ctx.inputs["word"]["value"]["word"])\n' + OK
    return function(body, stage="post-turn", extra=TAKES, root=NOTES)


async def configure(session: SessionDriver, revision: int, **change: Any) -> dict[str, Any]:
    """Change, and wait until it is in force or refused."""
    await session.update(names.CONFIGURE, change)
    return await session.until(lambda state: state["revision"] == revision)


async def test_a_session_chooses_who_answers_for_a_contract(tmp_path: Path) -> None:
    packages = {"one": gives("first"), "two": gives("second"), "taker": takes()}
    async with rig(tmp_path, packages=packages) as r:
        session = await r.session(packages=["one", "taker"])
        await session.play("I listen.")
        assert await records(r, session, "taker", "said") == {"last": "first"}
        state = await configure(session, 1, packages=["one", "two", "taker"])
        assert state["notices"][-1]["code"] == "activation.ambiguous-provider"
        assert state["notices"][-1]["refused"] == 1
        await configure(session, 2, packages=["one", "two", "taker"], providers={"word@1": "two"})
        turn = await session.play("I listen again.")
        assert await records(r, session, "taker", "said") == {"last": "second"}
        assert set(await nodes(session, turn["turn_id"])) == {"one", "two", "taker"}
        state = await configure(session, 3, providers={"word@1": None})
        assert state["notices"][-1]["refused"] == 3
        await configure(session, 4, providers={"word@1": "one"})
        await session.play("I listen once more.")
        assert await records(r, session, "taker", "said") == {"last": "first"}


async def test_values_are_held_against_the_schema_that_another_package_publishes(tmp_path: Path) -> None:
    """Whoever publishes it: the one that gives the value and the one that takes it need not."""
    schema = '{"type": "object", "properties": {"word": {"type": "string", "maxLength": 5}}}'
    root = "contracts: { word@1: { schema: ./word.json } }\n"
    speech = {"PLUGIN.md": f"---\ndescription: Words.\n{root}---\n", "word.json": schema}
    packages = {"one": gives("first"), "long": gives("a long word"), "speech": speech, "taker": takes()}
    async with rig(tmp_path, packages=packages) as r:
        session = await r.session(packages=["one", "speech", "taker"])
        await session.play("I listen.")
        assert await records(r, session, "taker", "said") == {"last": "first"}
        await configure(session, 1, packages=["long", "speech", "taker"])
        ran = await nodes(session, (await session.play("I listen again."))["turn_id"])
        assert (ran["long"]["status"], ran["long"]["reason"]) == ("failed", "runtime.output-schema-invalid")
        assert "maxLength" in ran["long"]["message"] or "too long" in ran["long"]["message"]


async def test_what_was_asked_for_and_is_not_active_is_told_once(tmp_path: Path) -> None:
    needy = {"PLUGIN.md": "---\ndescription: Needs a word.\nrequires: [word@1]\n---\n"}
    packages = {"one": gives("first"), "needy": needy, "tale": STORY}
    async with rig(tmp_path, packages=packages) as r:
        session = await r.session(packages=["tale", "needy"], excluded=["one"])
        state = await session.until(lambda state: state["notices"])
        assert [notice["code"] for notice in state["notices"]] == ["activation.excluded"]
        assert "refused" not in state["notices"][0]
        state = await configure(session, 1, excluded=["one"])
        assert len(state["notices"]) == 1
        state = await configure(session, 2, excluded=["nothing"])
        assert state["notices"][-1]["code"] == "package.unknown"


async def test_a_package_that_is_switched_off_stays_and_is_not_chosen_anew(
    tmp_path: Path,
) -> None:
    model = ModelServer([Reply(text="So it is.", times=0)])
    async with rig(tmp_path, packages={"tale": STORY, "one": gives("first")}, model=model) as r:
        session = await r.session(packages=["tale"])
        await session.play("I begin.")
        async with r.store.write() as conn:
            await switches.switch(conn, "tale", enabled=False)
        late = await r.session(packages=["tale"])
        state = await late.until(lambda state: state["status"] == "failed")
        assert state["notices"][-1]["code"] == "package.disabled"
        state = await configure(session, 1, packages=["tale", "one"])
        assert state["notices"] == []
        assert (await session.play("I go on."))["status"] == "committed"


TUNED = (
    "  tools: [look]\n"
    "  settings:\n"
    "    - { key: tone, type: select, options: [calm, grim], default: calm }\n"
    "    - { key: pace, type: integer, min: 1, max: 9 }\n"
)


async def test_settings_reach_prompts_and_tools_and_are_frozen_with_the_turn(tmp_path: Path) -> None:
    look = tool("look", f"{meet(tmp_path, 'started', 'go')}return dict(ctx.user_settings)")
    tale = dict(story_with("{plugin: [look]}", entry(look), TUNED))
    tale["PLUGIN.md"] = tale["PLUGIN.md"].replace("Tell the story.", "Tell it {{ userSettings.tone }}.")
    model = ModelServer([Reply(tool_calls=calls("look"), when="look"), Reply(text="So it is.", times=0)])
    async with rig(tmp_path, packages={"tale": tale}, model=model) as r:
        session = await r.session(packages=["tale"], settings={"tale": {"pace": 3}})
        receipt = await session.submit("I look.")
        await until(lambda: asyncio.to_thread((tmp_path / "started").exists), bool)
        await session.update(names.CONFIGURE, {"settings": {"tale": {"tone": "grim", "pace": None}}})
        (tmp_path / "go").touch()
        await session.result(receipt)
        assert "Tell it calm." in asked(r, 1)[0]["content"]
        assert answers(r, 2) == ['{"tone":"calm","pace":3}']
        await session.until(lambda state: state["revision"] == 1)
        await session.play("I wait.")
        assert "Tell it grim." in asked(r, 3)[0]["content"]
        state = await configure(session, 2, settings={"tale": {"pace": 10}})
        assert state["notices"][-1]["code"] == "setting.invalid"
        assert "from 1 to 9" in state["notices"][-1]["message"]


async def test_a_session_is_not_made_with_settings_that_do_not_fit(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": STORY}) as r:
        session = await r.session(packages=["tale"], settings={"tale": {"tone": "calm"}})
        state = await session.until(lambda state: state["status"] == "failed")
        assert state["notices"][-1]["code"] == "setting.unknown"
