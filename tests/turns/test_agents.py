"""Agent runs in a real turn: endings, corrections, limits, tools, failures of the model."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from store import calls as ledger
from store import messages
from store.tables import metadata
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import STORY, story_with
from tests.support.rig import Rig, rig
from tests.turns.builders import (
    Ag,
    answers,
    asked,
    calls,
    ended,
    entry,
    meet,
    package,
    reason,
    records,
    tool,
)

pytestmark = pytest.mark.slow


def teller(*sources: str, names: str, agent: str = "") -> dict[str, str]:
    """A story package with tools of its own."""
    return story_with(f"{{plugin: [{names}]}}", entry(*sources), f"  tools: [{names}]\n", agent)


async def test_prose_of_a_story_is_split_into_segments(tmp_path: Path) -> None:
    said = "The door opens.\n\nMira: You are late.\n\n*She turns away.*"
    async with rig(tmp_path, packages={"tale": STORY}, model=ModelServer([Reply(text=said)])) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("I knock.")
        assert result["story"]["text"]
        async with r.store.read() as conn:
            story = (await messages.list_all(conn, session.session_id))[1]
        kinds = [segment["kind"] for segment in story.segments]
        assert kinds[0] == "narration"
        assert kinds[2] == "action"


async def test_the_next_turn_is_told_what_was_said_before(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It rains."), Reply(text="It stops.")])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        await session.play("I look up.")
        await session.play("I wait.")
        said = [(m["role"], m["content"]) for m in asked(r, 2) if m["role"] != "system"]
        assert said == [("user", "I look up."), ("assistant", "It rains."), ("user", "I wait.")]


async def test_a_tool_result_is_what_the_model_reads_next(tmp_path: Path) -> None:
    files = teller(tool("look", 'return {"sees": "a cat"}'), names="look")
    model = ModelServer([Reply(tool_calls=calls("look")), Reply(text="A cat.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("I look.")
        assert result["story"]["text"] == "A cat."
        assert answers(r, 2) == ['{"sees":"a cat"}']
        r.model.assert_calls(2)


async def test_parallel_tools_run_at_once_and_are_answered_in_call_order(tmp_path: Path) -> None:
    files = teller(
        tool("left", meet(tmp_path, "left", "right") + "await asyncio.sleep(0.1)\nreturn 'L'"),
        tool("right", meet(tmp_path, "right", "left") + "return 'R'"),
        names="left, right",
    )
    model = ModelServer([Reply(tool_calls=calls("left", "right")), Reply(text="Both.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        await session.play("go")
        assert answers(r, 2) == ['"L"', '"R"']


async def test_a_tool_that_fails_is_told_to_the_model_and_the_turn_goes_on(tmp_path: Path) -> None:
    files = teller(tool("look", "raise RuntimeError('dark')"), names="look")
    model = ModelServer([Reply(tool_calls=calls("look")), Reply(text="It is dark.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("I look."))["status"] == "committed"
        assert "dark" in answers(r, 2)[0]


async def test_what_a_failed_tool_call_wrote_is_not_committed(tmp_path: Path) -> None:
    write = 'await ctx.plugin_data.set("notes", {key!r}, 1)\n'
    files = teller(
        tool("bad", write.format(key="bad") + "raise RuntimeError('no')"),
        tool("good", write.format(key="good") + "return 1"),
        names="bad, good",
    )
    model = ModelServer([Reply(tool_calls=calls("bad", "good")), Reply(text="Done.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        await session.play("go")
        assert await records(r, session, "tale", "notes") == {"good": 1}


# Built-in data tools


async def test_data_tools_read_what_the_same_run_wrote(tmp_path: Path) -> None:
    files = story_with(
        "{builtin: [plugin-data-set, plugin-data-get, plugin-data-list]}",
        "",
        "  data: { notes: { description: Notes. } }\n",
    )
    at = {"namespace": "notes", "key": "a"}
    write = Call(name="plugin-data-set", id="w", arguments=json.dumps({**at, "value": {"n": 1}}))
    read = Call(name="plugin-data-get", id="r", arguments=json.dumps(at))
    listed = Call(name="plugin-data-list", id="l", arguments=json.dumps({"namespace": "notes"}))
    model = ModelServer([Reply(tool_calls=[write, read]), Reply(tool_calls=[listed]), Reply(text="Noted.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        await session.play("go")
        assert json.loads(answers(r, 2)[1]) == {"found": True, "value": {"n": 1}}
        assert json.loads(answers(r, 3)[2]) == {"records": [{"key": "a", "value": {"n": 1}}]}
        assert await records(r, session, "tale", "notes") == {"a": {"n": 1}}


async def test_a_data_tool_refuses_a_record_that_breaks_its_schema(tmp_path: Path) -> None:
    data = "  data: { notes: { description: Notes., schema: ./n.json } }\n"
    files = {
        **story_with("{builtin: [plugin-data-set]}", "", data),
        "n.json": json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    }

    def write(value: Any) -> Reply:
        arguments = json.dumps({"namespace": "notes", "key": "a", "value": value})
        return Reply(tool_calls=[Call(name="plugin-data-set", id="w", arguments=arguments)])

    model = ModelServer([write({"n": "x"}), write({"n": 2}), Reply(text="Noted.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        await session.play("go")
        assert "tool.validation" in answers(r, 2)[0]
        assert await records(r, session, "tale", "notes") == {"a": {"n": 2}}


async def test_data_tools_keep_a_model_out_of_what_only_code_may_see(tmp_path: Path) -> None:
    secret = {"namespace": "_hidden.secret", "key": "a"}
    record = {**secret, "value": 2}
    asked_of_tools: dict[str, dict[str, Any]] = {
        "plugin-data-set": record,
        "plugin-data-set-batch": {"items": [record]},
        "plugin-data-get": secret,
        "plugin-data-list": {"namespace": "_hidden.secret"},
        "plugin-data-delete": secret,
    }
    files = story_with(
        f"{{builtin: [{', '.join(asked_of_tools)}], plugin: [keep]}}",
        entry(tool("keep", 'await ctx.plugin_data.set("_hidden.secret", "a", 1)\nreturn "kept"')),
        "  tools: [keep]\n",
    )
    tries = [Call(name=name, id=name, arguments=json.dumps(given)) for name, given in asked_of_tools.items()]
    model = ModelServer([Reply(tool_calls=calls("keep")), Reply(tool_calls=tries), Reply(text="Kept.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["status"] == "committed"
        kept, *refused = answers(r, 3)
        assert kept == '"kept"'
        assert ["commit.reserved-namespace" in answer for answer in refused] == [True] * 5
        assert await records(r, session, "tale", "_hidden.secret") == {"a": 1}


# Endings

FINISH = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def finisher(agent: str = "") -> dict[str, str]:
    """An agent that ends with the tool `report`."""
    source = entry(tool("report", 'return {"n": args["n"]}', parameters=json.dumps(FINISH)))
    return package(
        "contributes: { tools: [report] }\n",
        {"server/__init__.py": source},
        count=Ag("{stage: pre-turn}", agent=f"{{tools: {{plugin: [report]}}, finishWith: report{agent}}}"),
    )


async def test_a_finishing_tool_ends_the_run_with_its_result(tmp_path: Path) -> None:
    model = ModelServer([Reply(tool_calls=calls("report", arguments='{"n": 3}'))])
    async with rig(tmp_path, packages={"work": finisher()}, model=model) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert ended(result) == {"work/count": "success"}
        r.model.assert_calls(1)
        assert r.model.calls[0].body["tool_choice"] == "required"


async def test_prose_instead_of_the_finishing_tool_is_corrected_once(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="Three."), Reply(tool_calls=calls("report", arguments='{"n": 3}'))])
    async with rig(tmp_path, packages={"work": finisher()}, model=model) as r:
        session = await r.session(packages=["work"])
        assert ended(await session.play("go")) == {"work/count": "success"}
        assert "report" in asked(r, 2)[-1]["content"]


async def test_prose_again_after_the_correction_fails_the_run(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="Three."), Reply(text="Three!")])
    async with rig(tmp_path, packages={"work": finisher()}, model=model) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert reason(result, "work/count") == "agent.unfinished"
        assert result["usage"]["calls"] == 2


async def test_a_run_out_of_steps_fails_where_no_answer_can_complete_it(tmp_path: Path) -> None:
    wrong = Reply(tool_calls=calls("report", arguments='{"n": "x"}'))
    other = Reply(tool_calls=calls("report", arguments='{"n": "y"}'))
    model = ModelServer([wrong, other])
    async with rig(tmp_path, packages={"work": finisher(", loop: {maxSteps: 2}")}, model=model) as r:
        session = await r.session(packages=["work"])
        assert reason(await session.play("go"), "work/count") == "agent.step-limit"
        r.model.assert_calls(2)


async def test_a_story_out_of_steps_is_asked_for_its_answer_without_tools(tmp_path: Path) -> None:
    files = teller(tool("look", "return 1"), names="look", agent="    loop: { maxSteps: 1 }\n")
    model = ModelServer([Reply(tool_calls=calls("look")), Reply(text="Enough.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["story"]["text"] == "Enough."
        assert r.model.calls[1].body.get("tool_choice") == "none"


async def test_a_loop_is_nudged_and_then_a_story_answers_without_tools(tmp_path: Path) -> None:
    files = teller(tool("look", "return 1"), names="look")
    model = ModelServer([Reply(tool_calls=calls("look"), times=4), Reply(text="Enough.")])
    async with rig(tmp_path, packages={"tale": files}, model=model) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["story"]["text"] == "Enough."
        assert "identical" in asked(r, 4)[-1]["content"]
        assert r.model.calls[4].body.get("tool_choice") == "none"
        r.model.assert_calls(5)


async def test_a_loop_of_any_other_run_fails_it_by_name(tmp_path: Path) -> None:
    source = entry(tool("look", "return 1"))
    work = package(
        "contributes: { tools: [look] }\n",
        {"server/__init__.py": source},
        watch=Ag("{stage: pre-turn}", agent="{tools: {plugin: [look]}}"),
    )
    async with rig(
        tmp_path, packages={"work": work}, model=ModelServer([Reply(tool_calls=calls("look"), times=0)])
    ) as r:
        session = await r.session(packages=["work"])
        assert reason(await session.play("go"), "work/watch") == "agent.loop"


SCHEMA = {
    "runtimes/judge/s.json": json.dumps(
        {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    )
}


def judge(more: str = "") -> dict[str, str]:
    """An agent whose ending is JSON."""
    return package(
        "", SCHEMA, judge=Ag("{stage: pre-turn}", io="{output: {schema: ./s.json}}", agent=f"{{{more}}}")
    )


async def test_a_json_ending_is_the_output(tmp_path: Path) -> None:
    async with rig(
        tmp_path, packages={"work": judge()}, model=ModelServer([Reply(text='{"ok": true}')])
    ) as r:
        session = await r.session(packages=["work"])
        assert ended(await session.play("go")) == {"work/judge": "success"}


async def test_a_json_ending_that_breaks_its_schema_is_repaired_once(tmp_path: Path) -> None:
    model = ModelServer([Reply(text='{"ok": "yes"}'), Reply(text='{"ok": true}')])
    async with rig(tmp_path, packages={"work": judge()}, model=model) as r:
        session = await r.session(packages=["work"])
        assert ended(await session.play("go")) == {"work/judge": "success"}
        assert "ok" in asked(r, 2)[-1]["content"]


async def test_a_json_ending_that_stays_wrong_fails_the_run(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="I think so."), Reply(text="Yes.")])
    async with rig(tmp_path, packages={"work": judge()}, model=model) as r:
        session = await r.session(packages=["work"])
        assert reason(await session.play("go"), "work/judge") == "runtime.output-schema-invalid"
        r.model.assert_calls(2)


# What goes wrong with a model


async def test_failed_calls_are_counted_and_paid(tmp_path: Path) -> None:
    model = ModelServer([Reply(status=500, body="{}"), Reply(text="Rain.", input_tokens=10, output_tokens=5)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert result["usage"] == {"calls": 2, "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.00002}
        async with r.store.read() as conn:
            rows = await ledger.list_calls(conn, result["turn_id"])
        assert [row.status for row in rows] == ["failed", "ok"]


async def test_the_turn_adds_up_what_all_its_agents_cost(tmp_path: Path) -> None:
    work = package(a=Ag("{stage: pre-turn}"), b=Ag("{stage: post-turn}"))
    async with rig(tmp_path, packages={"work": work}, model=ModelServer([Reply(text="Ok.", times=2)])) as r:
        session = await r.session(packages=["work"])
        assert (await session.play("go"))["usage"]["input_tokens"] == 20


async def rejection(r: Rig) -> Any:
    session = await r.session(packages=["tale"])
    result = await session.play("go")
    assert result["status"] == "rejected"
    return result["reason"]


async def test_a_model_server_that_is_down_rejects_the_turn_by_name(tmp_path: Path) -> None:
    model = ModelServer()
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        await model.close()
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert (result["status"], result["reason"]) == ("rejected", "model.transport")
        assert f"slot story at {model.url}: ConnectError" in result["message"]


async def test_a_wrong_key_rejects_the_turn_by_name_and_is_tried_once(tmp_path: Path) -> None:
    body = '{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}'
    async with rig(
        tmp_path, packages={"tale": STORY}, model=ModelServer([Reply(status=401, body=body)])
    ) as r:
        assert await rejection(r) == "model.auth"
        r.model.assert_calls(1)


async def test_a_key_that_is_not_set_is_told_at_start_and_nothing_is_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig(tmp_path, packages={"tale": STORY}, api_key_env="NO_SUCH_KEY") as r:
        warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        for slot in ("story", "plugin"):
            said = f"slot {slot}: the environment variable NO_SUCH_KEY is not set"
            assert [text for text in warned if text.startswith(said)]
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert (result["status"], result["reason"]) == ("rejected", "model.auth")
        assert f"slot story at {r.model.url}: the environment variable NO_SUCH_KEY" in result["message"]
        r.model.assert_calls(0)


async def test_a_key_that_the_provider_repeats_stands_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-0123456789"
    monkeypatch.setenv("MODEL_KEY", key)
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {key}", "type": key}})
    model = ModelServer([Reply(status=401, body=body)])
    caplog.set_level(logging.DEBUG)
    async with rig(tmp_path, packages={"tale": STORY}, model=model, api_key_env="MODEL_KEY") as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert model.calls[0].authorization == f"Bearer {key}"
        assert (result["reason"], "provided: ***" in result["message"]) == ("model.auth", True)
        async with r.store.read() as conn:
            stored = {t.name: str((await conn.execute(select(t))).all()) for t in metadata.sorted_tables}
        assert "model.auth" in stored["calls"]
        assert not [text for text in (str(result), *stored.values(), caplog.text) if key in text]


async def test_an_unconfigured_slot_rejects_the_turn_by_name_before_any_call(tmp_path: Path) -> None:
    files = story_with("{}", agent="    model: painter\n")
    async with rig(tmp_path, packages={"tale": files}) as r:
        assert await rejection(r) == "model.unconfigured"
        r.model.assert_calls(0)


async def test_a_refused_request_rejects_the_turn_with_the_providers_words(tmp_path: Path) -> None:
    body = '{"error": {"message": "max_tokens is too large", "type": "invalid_request_error"}}'
    async with rig(
        tmp_path, packages={"tale": STORY}, model=ModelServer([Reply(status=400, body=body)])
    ) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert (result["status"], result["reason"]) == ("rejected", "model.invalid-request")
        assert "max_tokens is too large" in result["message"]


async def test_a_failed_agent_beside_the_story_does_not_reject_the_turn(tmp_path: Path) -> None:
    work = package(a=Ag("{stage: pre-turn}", "Prompt of A."))
    replies = [Reply(status=400, body="{}", when="Prompt of A."), Reply(text="Rain.")]
    async with rig(tmp_path, packages={"work": work, "tale": STORY}, model=ModelServer(replies)) as r:
        session = await r.session(packages=["work", "tale"])
        result = await session.play("go")
        assert result["status"] == "committed"
        assert ended(result) == {"tale": "success", "work/a": "failed"}
