"""What a turn does with runs that fail, and what a commit does with runs that it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from kernel.errors import Code
from store import exports, messages, state
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function
from tests.support.rig import rig
from tests.turns.builders import OK, Fn, ended, entry, package, reason, records, tool, topics

pytestmark = pytest.mark.slow

EVENTS = (
    "contributes:\n  events: [{ topic: work.done, schema: ./e.json, description: Done. }]\n"
    "  data: { counts: { schema: ./counts.json } }\n"
)
EVENT = {
    "e.json": json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}}),
    "counts.json": json.dumps({"type": "object", "required": ["n"]}),
}
SET = 'await ctx.plugin_data.set("notes", "x", 1)\n'


def returns(effects: str) -> str:
    return f'return {{"outcome": "success", "value": {{}}, "effects": {effects}}}'


def patch(path: str, *ops: str) -> str:
    return returns(f'{{"statePatches": [{{"path": "{path}", "ops": [{", ".join(ops)}]}}]}}')


INC = '{"op": "inc", "path": "/n", "by": 1}'
TOO_MUCH = '{"op": "inc", "path": "/n", "by": 9, "max": 5}'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (SET + "raise ValueError('no')", "runtime.failed"),
        (SET + "return None", "runtime.output-schema-invalid"),
        (SET + "return [1]", "runtime.output-schema-invalid"),
        (SET + 'return {"outcome": "splendid"}', "runtime.output-schema-invalid"),
        (SET + 'return {"outcome": "failed", "error": "not today"}', "runtime.failed"),
        (SET + returns('{"events": [{"topic": "work.never"}]}'), "commit.proposal-invalid"),
        (
            SET + returns('{"events": [{"topic": "work.done", "payload": {"n": "x"}}]}'),
            "commit.proposal-invalid",
        ),
        (
            SET + returns('{"pluginData": [{"namespace": "counts", "key": "x", "value": {}}]}'),
            "tool.validation",
        ),
        (SET + 'await ctx.plugin_data.set("counts", "x", {})\n' + OK, "tool.validation"),
        (SET + returns('{"strange": []}'), "handler.channel"),
        (SET + 'await ctx.plugin_data.set("_jobs", "x", 1)\n' + OK, "commit.reserved-namespace"),
        (SET + 'await ctx.plugin_data.set("notes", "y", "v" * 300 * 1024)\n' + OK, "commit.value-too-large"),
        (SET + 'return {"outcome": "success", "value": {"big": object}}', "runtime.output-schema-invalid"),
    ],
)
async def test_a_run_that_goes_wrong_fails_by_name_alone_and_leaves_nothing(
    tmp_path: Path, body: str, code: str
) -> None:
    work = package(
        EVENTS,
        EVENT,
        bad=Fn("{stage: post-turn}", body),
        child=Fn("{stage: post-turn, needs: [work/bad]}"),
        other=Fn("{stage: post-turn}", 'await ctx.plugin_data.set("notes", "other", 1)\n' + OK),
    )
    model = ModelServer([Reply(text="Rain.")])
    async with rig(tmp_path, packages={"work": work, "tale": STORY}, model=model) as r:
        session = await r.session(packages=["work", "tale"])
        result = await session.play("go")
        assert result["status"] == "committed"
        assert ended(result) == {
            "tale": "success",
            "work/bad": "failed",
            "work/child": "skipped",
            "work/other": "success",
        }
        assert reason(result, "work/bad") == code
        assert code not in next(run["message"] for run in result["runs"] if run["runtime_id"] == "work/bad")
        assert await records(r, session, "work", "notes") == {"other": 1}
        assert await records(r, session, "work", "counts") == {}
        assert await topics(r, session) == []


async def test_a_handler_past_its_time_fails_and_the_turn_goes_on(tmp_path: Path) -> None:
    work = package(
        slow=Fn("{stage: pre-turn}", SET + "await asyncio.sleep(60)", function="{timeoutMs: 200}"),
        other=Fn("{stage: pre-turn}"),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go", timeout_s=10)
        assert ended(result) == {"work/other": "success", "work/slow": "failed"}
        assert reason(result, "work/slow") == "runtime.timeout"
        assert await records(r, session, "work", "notes") == {}


async def test_a_skipped_function_stages_nothing_and_skips_its_dependants(tmp_path: Path) -> None:
    work = package(
        rest=Fn("{stage: pre-turn}", SET + 'return {"outcome": "skipped", "skipReason": "not now"}'),
        child=Fn("{stage: pre-turn, needs: [work/rest]}"),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        assert ended(await session.play("go")) == {"work/child": "skipped", "work/rest": "skipped"}
        assert await records(r, session, "work", "notes") == {}


STORY_FUNCTION = "  io: { visibility: story, output: { contract: narrative-engine@2 } }\n"
TELL = 'return {"outcome": "success", "value": {"segments": [{"kind": "narration", "text": "Rain."}]}}'


async def test_a_function_can_tell_the_story(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": function(TELL, stage="narrative", extra=STORY_FUNCTION)}) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("go"))["story"] == {"runtime_id": "tale", "text": "Rain."}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise ValueError('no')", "runtime.failed"),
        ("return {'outcome': 'success', 'value': {'segments': 'Rain'}}", "runtime.output-schema-invalid"),
        ("return {'outcome': 'success', 'value': {'segments': []}}", "model.empty-reply"),
        (TELL.replace("Rain.", "  "), "model.empty-reply"),
    ],
)
async def test_a_story_that_fails_or_is_empty_rejects_the_turn_and_nothing_is_said(
    tmp_path: Path, body: str, code: str
) -> None:
    packages = {
        "tale": function(body, stage="narrative", extra=STORY_FUNCTION),
        "work": function(SET + OK),
    }
    async with rig(tmp_path, packages=packages) as r:
        session = await r.session(packages=["tale", "work"])
        result = await session.play("go")
        assert (result["status"], result["reason"]) == ("rejected", code)
        assert result["completed_player_turns"] == 0
        assert await records(r, session, "work", "notes") == {}
        async with r.store.read() as conn:
            assert await messages.list_all(conn, session.session_id) == []
        state = await session.until(lambda state: state["last_turn"])
        assert state["last_turn"]["status"] == "rejected"


async def test_a_story_that_is_skipped_rejects_nothing(tmp_path: Path) -> None:
    body = 'return {"outcome": "skipped"}'
    packages = {"tale": function(body, stage="narrative", extra=STORY_FUNCTION), "work": function(SET + OK)}
    async with rig(tmp_path, packages=packages) as r:
        session = await r.session(packages=["tale", "work"])
        result = await session.play("go")
        assert result["status"] == "committed"
        assert await records(r, session, "work", "notes") == {"x": 1}


async def test_a_conflict_at_commit_drops_that_run_and_its_dependants_beside_a_story(tmp_path: Path) -> None:
    keep = 'await ctx.plugin_data.set("notes", "{}", 1)\n'
    work = package(
        conflict=Fn("{stage: pre-turn}", keep.format("conflict") + patch("/score", TOO_MUCH)),
        child=Fn("{stage: pre-turn, needs: [work/conflict]}", keep.format("child") + OK),
        fine=Fn("{stage: pre-turn}", keep.format("fine") + patch("/score", INC)),
    )
    model = ModelServer([Reply(text="Rain.")])
    async with rig(tmp_path, packages={"work": work, "tale": STORY}, model=model) as r:
        session = await r.session(packages=["work", "tale"])
        result = await session.play("go")
        assert result["status"] == "committed"
        assert ended(result) == {
            "tale": "success",
            "work/child": "failed",
            "work/conflict": "failed",
            "work/fine": "success",
        }
        assert reason(result, "work/conflict") == "commit.conflict"
        assert await records(r, session, "work", "notes") == {"fine": 1}
        async with r.store.read() as conn:
            score = await state.get(conn, session.session_id, "/score")
        assert score is not None
        assert score.value == {"n": 1}


async def test_a_conflict_without_a_story_rolls_everything_back(tmp_path: Path) -> None:
    work = package(
        conflict=Fn("{stage: post-turn}", patch("/score", TOO_MUCH)),
        fine=Fn("{stage: pre-turn}", SET + OK),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert (result["status"], result["reason"]) == ("rejected", "commit.conflict")
        assert await records(r, session, "work", "notes") == {}


async def test_a_story_that_loses_a_need_at_commit_rejects_the_turn(tmp_path: Path) -> None:
    tale = package(
        conflict=Fn("{stage: pre-turn}", patch("/score", TOO_MUCH)),
        story=Fn(
            "{stage: narrative, needs: [tale/conflict]}",
            TELL,
            io="{visibility: story, output: {contract: narrative-engine@2}}",
        ),
    )
    async with rig(tmp_path, packages={"tale": tale}) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("go")
        assert (result["status"], result["reason"]) == ("rejected", "commit.conflict")


async def test_runs_commit_in_topological_order_whoever_finished_first(tmp_path: Path) -> None:
    def adds(name: str, wait: float) -> str:
        op = f'{{"op": "append", "path": "/order", "value": "{name}"}}'
        event = f'"events": [{{"topic": "work.done", "payload": {{"who": "{name}"}}}}]'
        patches = f'"statePatches": [{{"path": "/log", "ops": [{op}]}}]'
        return f"await asyncio.sleep({wait})\n" + returns(f"{{{event}, {patches}}}")

    work = package(
        EVENTS,
        EVENT,
        b=Fn("{stage: pre-turn}", adds("b", 0)),
        a=Fn("{stage: pre-turn}", adds("a", 0.3)),
        z=Fn("{stage: pre-turn}", adds("z", 0.2)),
        c=Fn("{stage: pre-turn, needs: [work/z]}", adds("c", 0)),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        await session.play("go")
        async with r.store.read() as conn:
            log = await state.get(conn, session.session_id, "/log")
        assert log is not None
        assert log.value == {"order": ["a", "b", "z", "c"]}
        assert [payload["who"] for _, payload in await topics(r, session)] == ["a", "b", "z", "c"]


async def test_exports_are_numbered_per_runtime_and_name(tmp_path: Path) -> None:
    schema = {"runtimes/roll/n.json": json.dumps({"type": "object"})}
    io = "{output: {schema: ./n.json, recordAs: last}}"
    work = package(
        "",
        schema,
        roll=Fn(
            "{stage: pre-turn}", 'return {"outcome": "success", "value": {"t": ctx.logical_turn}}', io=io
        ),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        counts = [(await session.play("go"))["committed"] for _ in range(2)]
        async with r.store.read() as conn:
            found = [await exports.get(conn, session.session_id, "work/roll", "last", n) for n in (1, 2)]
        assert counts == [{"exports": 1}] * 2
        assert [export.value if export else None for export in found] == [{"t": 1}, {"t": 2}]


async def test_the_data_of_another_package_is_out_of_reach(tmp_path: Path) -> None:
    look = (
        'found = [await ctx.plugin_data.get("notes", "x"), await ctx.plugin_data.list("notes")]\n'
        'await ctx.plugin_data.set("seen", "x", found)\n' + OK
    )
    packages = {"one": function(SET + OK), "two": function(look, stage="post-turn")}
    async with rig(tmp_path, packages=packages) as r:
        session = await r.session(packages=["one", "two"])
        for _ in range(2):
            await session.play("go")
        assert await records(r, session, "one", "notes") == {"x": 1}
        assert await records(r, session, "two", "seen") == {"x": [None, []]}


async def test_data_commits_with_the_turn_and_is_read_in_the_next(tmp_path: Path) -> None:
    body = (
        'before = await ctx.plugin_data.get("notes", "n") or 0\n'
        'await ctx.plugin_data.set("notes", "n", before + 1)\n'
        'now = await ctx.plugin_data.get("notes", "n")\n'
        'await ctx.plugin_data.set("notes", "read", [before, now])\n' + OK
    )
    async with rig(tmp_path, packages={"work": function(body)}) as r:
        session = await r.session(packages=["work"])
        for _ in range(3):
            await session.play("go")
        assert await records(r, session, "work", "notes") == {"n": 3, "read": [2, 3]}


async def test_a_package_whose_handler_is_no_python_makes_no_session(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"broken": {**function("return {}"), "handler.py": "x ="}}) as r:
        session = await r.session(packages=["broken"])
        with pytest.raises(WorkflowFailureError) as failed:
            await session.handle.result()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == Code.PACKAGE_INVALID
        assert "handler.py:1: package.module: this is no Python" in failed.value.cause.message


async def test_a_package_whose_code_does_not_load_makes_no_session(
    tmp_path: Path,
) -> None:
    broken = {**function("return {}"), "handler.py": "from nothing_of_that_name import handler\n"}
    async with rig(tmp_path, packages={"broken": broken, "tale": STORY}) as r:
        session = await r.session(packages=["broken"])
        with pytest.raises(WorkflowFailureError) as failed:
            await session.handle.result()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == Code.PACKAGE_LOAD
        assert "nothing_of_that_name" in failed.value.cause.message
        assert failed.value.cause.message.startswith(f"{Code.PACKAGE_LOAD}: broken/handler.py:1: ")
        state = await session.state()
        assert (state["status"], [notice["code"] for notice in state["notices"]]) == (
            "failed",
            [Code.PACKAGE_LOAD],
        )
        good = await r.session(packages=["tale"])
        revision = (await good.update("configure", {"packages": ["tale", "broken"]}))["revision"]
        view = await good.until(lambda view: view["revision"] == revision)
        assert [notice["code"] for notice in view["notices"]] == [Code.PACKAGE_LOAD]
        assert view["notices"][0]["message"].startswith("broken/handler.py:1: imports nothing_of_that_name")


async def test_a_function_that_may_call_a_tool_which_needs_approval_is_not_activated(tmp_path: Path) -> None:
    files = {
        "server/__init__.py": entry(tool("act", "return 1", needs_approval=True), tool("look", "return 2"))
    }
    packages = {
        name: package(
            "contributes: { tools: [act, look] }\n",
            files,
            ask=Fn("{stage: pre-turn}", function=f"{{tools: {{plugin: [{called}]}}}}"),
        )
        for name, called in (("bold", "act"), ("meek", "look"))
    }
    async with rig(tmp_path, packages=packages) as r:
        refused, taken = await r.session(packages=["meek", "bold"]), await r.session(packages=["meek"])
        with pytest.raises(WorkflowFailureError) as failed:
            await refused.handle.result()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == Code.PACKAGE_UNSUPPORTED
        assert "function.tools.plugin: act needs approval" in failed.value.cause.message
        assert ended(await taken.play("go")) == {"meek/ask": "success"}


async def test_messages_of_a_function_reach_the_model_and_wrong_ones_fail_by_name(tmp_path: Path) -> None:
    ask = "await ctx.gateway.generate_text(messages=[{'role': 'user', %r: 'Who?'}])\n" + OK
    packages = {"good": function(ask % "content"), "bad": function(ask % "text"), "tale": STORY}
    model = ModelServer([Reply(text="Ada.", when="Who?"), Reply(text="Hi.")])
    async with rig(tmp_path, packages=packages, model=model) as r:
        session = await r.session(packages=["good", "bad", "tale"])
        result = await session.play("go")
        assert ended(result) == {"good": "success", "bad": "failed", "tale": "success"}
        assert reason(result, "bad") == "tool.arguments"
        r.model.assert_calls(2)
