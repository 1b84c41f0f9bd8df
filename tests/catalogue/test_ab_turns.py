"""Catalogue A and B through a real turn: what a model gets wrong is told to it, and the turn goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store import calls as ledger
from store import tool_results
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import STORY, story_with
from tests.support.rig import rig
from tests.turns.builders import answers, asked, entry, records, tool

pytestmark = pytest.mark.slow

WRITE = 'key = str(args.get("n", "none"))\nawait ctx.plugin_data.set("ran", key, args)\nreturn {"ran": key}'
SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
DATA = "  data: { ran: { description: Calls that ran. } }\n"
TALE = story_with("{plugin: [note]}", entry(tool("note", WRITE, SCHEMA)), "  tools: [note]\n" + DATA)


def note(arguments: str, id_: str | None = "c1", name: str = "note") -> Call:
    return Call(name=name, arguments=arguments, id=id_)


END = Reply(text="Done.")


@pytest.mark.parametrize("arguments", ['query = """select 1"""', '{"n": 1,}'])
async def test_a1_arguments_that_are_no_json_are_told_to_the_model_and_nothing_runs(
    tmp_path: Path, arguments: str
) -> None:
    model = ModelServer([Reply(tool_calls=[note(arguments)]), END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["status"] == "committed"
        assert answers(r, 2)[0].startswith('{"error":"tool.arguments: ')
        assert await records(r, session, "tale", "ran") == {}


async def test_a5_good_calls_run_once_beside_a_bad_one_and_the_reply_is_paid(tmp_path: Path) -> None:
    mixed = [note('{"n": 1}', "a"), note('{"n": 2', "b"), note('{"n": 3}', "c")]
    model = ModelServer([Reply(tool_calls=mixed), END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        told = answers(r, 2)
        assert [json.loads(told[0]), json.loads(told[2])] == [{"ran": "1"}, {"ran": "3"}]
        assert "tool.arguments" in told[1]
        assert sorted(await records(r, session, "tale", "ran")) == ["1", "3"]
        assert (result["usage"]["calls"], result["usage"]["input_tokens"]) == (2, 20)


async def test_a6_a_schema_violation_costs_no_activity_and_is_told_to_the_model(tmp_path: Path) -> None:
    model = ModelServer([Reply(tool_calls=[note('{"n": "three"}')]), END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert "tool.validation" in answers(r, 2)[0]
        assert "n" in answers(r, 2)[0]
        history = await r.client.get_workflow_handle(f"agent/{result['turn_id']}/tale").fetch_history()
        started = [
            event for event in history.events if event.HasField("activity_task_scheduled_event_attributes")
        ]
        assert len(started) == 2
        r.model.assert_calls(2)


@pytest.mark.parametrize("finish", ["length", "tool_calls"])
async def test_a7_and_a8_a_call_cut_at_the_output_limit_never_runs(tmp_path: Path, finish: str) -> None:
    cut = Reply(tool_calls=[note('{"n": 1, "content":"line1')], finish=finish, output_tokens=16384)
    model = ModelServer([cut, END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["status"] == "committed"
        assert await records(r, session, "tale", "ran") == {}
        for message in asked(r, 2):
            for call in message.get("tool_calls", ()):
                json.loads(call["function"]["arguments"])  # a provider refuses what does not parse


async def test_a12_a_lone_surrogate_of_a_tool_never_reaches_the_wire(tmp_path: Path) -> None:
    source = entry(tool("note", 'return "ok " + chr(0xDC00) + " end"', SCHEMA))
    tale = story_with("{plugin: [note]}", source, "  tools: [note]\n")
    model = ModelServer([Reply(tool_calls=[note("{}")]), END, Reply(text="Again.")])
    async with rig(tmp_path, packages={"tale": tale}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["status"] == "committed"
        assert answers(r, 2) == ['"ok \ufffd end"']
        assert (await session.play("again"))["story"]["text"] == "Again."


@pytest.mark.parametrize("ids", [("grep:3", "grep:3"), ("", ""), (None, None)])
async def test_b1_and_b2_calls_that_share_an_id_or_have_none_both_run(
    tmp_path: Path, ids: tuple[str | None, str | None]
) -> None:
    model = ModelServer([Reply(tool_calls=[note('{"n": 1}', ids[0]), note('{"n": 2}', ids[1])]), END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert [json.loads(told) for told in answers(r, 2)] == [{"ran": "1"}, {"ran": "2"}]
        sent = [call["id"] for message in asked(r, 2) for call in message.get("tool_calls", ())]
        told = [message["tool_call_id"] for message in asked(r, 2) if message["role"] == "tool"]
        assert sent == told
        assert len(set(sent)) == 2
        async with r.store.read() as conn:
            assert len(await tool_results.list_run(conn, result["turn_id"], "tale")) == 2


async def test_b8_an_unknown_tool_is_answered_with_the_one_that_is_alike(tmp_path: Path) -> None:
    model = ModelServer([Reply(tool_calls=[note("{}", name="mcp__x__note")]), END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["status"] == "committed"
        assert "Did you mean `note`?" in answers(r, 2)[0]


async def test_b9_empty_replies_after_tools_are_nudged_and_then_reject_by_name(tmp_path: Path) -> None:
    model = ModelServer([Reply(tool_calls=[note('{"n": 1}')]), Reply(times=0)])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert (result["status"], result["reason"]) == ("rejected", "model.empty-reply")
        r.model.assert_calls(5)
        assert await records(r, session, "tale", "ran") == {}


async def test_b9_a_nudged_model_that_speaks_completes_the_turn(tmp_path: Path) -> None:
    model = ModelServer([Reply(), END])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert result["story"]["text"] == "Done."
        async with r.store.read() as conn:
            assert len(await ledger.list_calls(conn, result["turn_id"])) == 2


async def test_b11_a_reply_of_reasoning_alone_is_empty_and_capped(tmp_path: Path) -> None:
    model = ModelServer([Reply(reasoning="Hm.", times=0)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["reason"] == "model.empty-reply"
        r.model.assert_calls(4)


async def test_b13_one_tool_with_a_name_no_provider_takes_does_not_kill_the_call(tmp_path: Path) -> None:
    source = entry(tool("admin.tools list", 'return "listed"', SCHEMA))
    tale = story_with('{plugin: ["admin.tools list"]}', source, '  tools: ["admin.tools list"]\n')
    model = ModelServer()
    async with rig(tmp_path, packages={"tale": tale}, model=model) as r:
        session = await r.session(packages=["tale"])
        model.add(Reply(text="First."))
        await session.play("go")
        (shown,) = [offered["function"]["name"] for offered in r.model.calls[0].body["tools"]]
        assert " " not in shown
        assert "." not in shown
        model.add(Reply(tool_calls=[note("{}", name=shown)]), END)
        await session.play("go")
        assert answers(r, 3) == ['"listed"']
