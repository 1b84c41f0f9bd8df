"""The stage graph of a real turn: order, gates, inputs, skips, manual runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from kernel.wire import names
from store import sessions, turns
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function
from tests.support.rig import rig
from tests.turns.builders import OK, Ag, Fn, ended, meet, nodes, package, reason, records

pytestmark = pytest.mark.slow

NUMBER = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


def gives(value: str) -> str:
    return f'return {{"outcome": "success", "value": {value}}}'


async def test_every_node_of_a_stage_settles_before_the_next_stage_starts(tmp_path: Path) -> None:
    work = package(
        early=Fn("{stage: pre-turn}", "await asyncio.sleep(0.2)\n" + OK),
        quick=Fn("{stage: pre-turn}"),
        late=Fn("{stage: post-turn}"),
        last=Fn("{stage: audit}"),
    )
    async with rig(
        tmp_path, packages={"work": work, "tale": STORY}, model=ModelServer([Reply(text="Rain.")])
    ) as r:
        session = await r.session(packages=["work", "tale"])
        result = await session.play("go")
        ran = await nodes(session, result["turn_id"])
        assert result["status"] == "committed"
        assert ran["tale"]["started_at"] >= ran["work/early"]["ended_at"]
        assert ran["work/late"]["started_at"] >= ran["tale"]["ended_at"]
        assert ran["work/last"]["started_at"] >= ran["work/late"]["ended_at"]


async def test_independent_nodes_run_at_once(tmp_path: Path) -> None:
    work = package(
        a=Fn("{stage: pre-turn}", meet(tmp_path, "a", "b") + OK),
        b=Fn("{stage: pre-turn}", meet(tmp_path, "b", "a") + OK),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        assert ended(await session.play("go")) == {"work/a": "success", "work/b": "success"}


async def test_a_node_starts_when_its_own_gate_opens_not_when_its_layer_does(tmp_path: Path) -> None:
    work = package(
        first=Fn("{stage: pre-turn}"),
        second=Fn("{stage: pre-turn, needs: [work/first]}", f"Path({str(tmp_path / 'go')!r}).touch()\n{OK}"),
        slow=Fn("{stage: pre-turn}", meet(tmp_path, "slow", "go") + OK),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        assert set(ended(await session.play("go")).values()) == {"success"}


async def test_g3_and_g7_a_need_that_fails_skips_all_that_is_behind_it_and_nothing_else(
    tmp_path: Path,
) -> None:
    work = package(
        bad=Fn("{stage: pre-turn}", "raise ValueError('no')"),
        child=Fn("{stage: pre-turn, needs: [work/bad]}"),
        grandchild=Fn("{stage: post-turn, needs: [work/child]}"),
        follower=Fn("{stage: pre-turn, after: [work/bad]}"),
        other=Fn("{stage: pre-turn}"),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert result["status"] == "committed"
        assert ended(result) == {
            "work/bad": "failed",
            "work/child": "skipped",
            "work/grandchild": "skipped",
            "work/follower": "success",
            "work/other": "success",
        }
        assert reason(result, "work/child") == "upstream-not-success"


async def test_after_orders_and_gives_no_gate(tmp_path: Path) -> None:
    work = package(
        a=Fn("{stage: pre-turn, after: [work/b]}"),
        b=Fn("{stage: pre-turn}", "await asyncio.sleep(0.1)\n" + OK),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        ran = await nodes(session, result["turn_id"])
        assert ran["work/a"]["started_at"] >= ran["work/b"]["ended_at"]


async def test_an_input_carries_the_selected_part_of_an_upstream_value(tmp_path: Path) -> None:
    keep = 'await ctx.plugin_data.set("seen", "x", ctx.inputs["n"])\n' + OK
    work = package(
        source=Fn("{stage: pre-turn}", gives('{"deep": {"n": [4, 5]}}')),
        sink=Fn(
            "{stage: pre-turn}", keep, io="{inputs: {n: {from: {runtime: work/source}, select: /deep/n/1}}}"
        ),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        await session.play("go")
        seen = await records(r, session, "work", "seen")
        assert seen["x"]["value"] == 5
        assert seen["x"]["provenance"] == {"pluginId": "work", "runtimeId": "work/source"}


async def test_a_required_input_without_a_value_skips_and_an_optional_one_is_left_out(tmp_path: Path) -> None:
    keep = 'await ctx.plugin_data.set("seen", "x", sorted(ctx.inputs))\n' + OK
    source = "{from: {runtime: work/source}, select: /absent"
    work = package(
        source=Fn("{stage: pre-turn}", gives('{"n": 1}')),
        must=Fn("{stage: pre-turn}", io=f"{{inputs: {{n: {source}}}}}}}"),
        may=Fn("{stage: pre-turn}", keep, io=f"{{inputs: {{n: {source}, required: false}}}}}}"),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert ended(result)["work/must"] == "skipped"
        assert reason(result, "work/must") == "runtime.input-missing"
        assert await records(r, session, "work", "seen") == {"x": []}


async def test_a_contract_input_reads_the_providers_of_other_packages(tmp_path: Path) -> None:
    contract = "contracts: { dice.n@1: { schema: ./n.json } }\n"
    provider = {
        **function(gives('{"n": 3}'), root=contract, extra="  io: {output: {contract: dice.n@1}}\n"),
        "n.json": NUMBER,
    }
    keep = (
        'await ctx.plugin_data.set("seen", "x", [i["value"]["n"] for i in ctx.inputs["all"]["items"]])\n' + OK
    )
    reader = function(
        keep,
        extra="  io: {inputs: {all: {from: {contract: dice.n@1, cardinality: all}}}}\n",
        stage="post-turn",
    )
    async with rig(tmp_path, packages={"one": provider, "two": provider, "reader": reader}) as r:
        session = await r.session(packages=["one", "two", "reader"])
        result = await session.play("go")
        assert set(ended(result).values()) == {"success"}
        assert await records(r, session, "reader", "seen") == {"x": [3, 3]}


async def test_a_contract_value_that_breaks_its_schema_fails_its_provider(tmp_path: Path) -> None:
    provider = {
        **function(
            gives('{"n": "three"}'),
            root="contracts: { dice.n@1: { schema: ./n.json } }\n",
            extra="  io: {output: {contract: dice.n@1}}\n",
        ),
        "n.json": NUMBER,
    }
    async with rig(tmp_path, packages={"one": provider}) as r:
        session = await r.session(packages=["one"])
        result = await session.play("go")
        assert reason(result, "one") == "runtime.output-schema-invalid"


async def test_the_story_of_the_turn_is_an_input_of_what_comes_after(tmp_path: Path) -> None:
    keep = 'await ctx.plugin_data.set("seen", "x", ctx.inputs["story"]["value"])\n' + OK
    io = "  io: {inputs: {story: {from: {contract: narrative-engine@2}, select: /segments/0/text}}}\n"
    reader = function(keep, stage="post-turn", extra=io)
    async with rig(
        tmp_path, packages={"tale": STORY, "reader": reader}, model=ModelServer([Reply(text="Rain.")])
    ) as r:
        session = await r.session(packages=["tale", "reader"])
        await session.play("go")
        assert await records(r, session, "reader", "seen") == {"x": "Rain."}


async def test_a_runtime_of_every_second_turn_runs_on_even_turns(tmp_path: Path) -> None:
    work = package(always=Fn("{stage: pre-turn}"), second=Fn("{stage: pre-turn, every: 2}"))
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        ran = [sorted(ended(await session.play("go"))) for _ in range(4)]
        assert ran == [["work/always"], ["work/always", "work/second"]] * 2


async def test_a_cycle_across_packages_skips_its_members_and_names_the_path(tmp_path: Path) -> None:
    def member(own: str, other: str) -> dict[str, str]:
        root = f"contracts: {{ {own}: {{ schema: ./n.json }} }}\n"
        need = f"  io: {{output: {{contract: {own}}}, inputs: {{up: {{from: {{contract: {other}}}}}}}}}\n"
        return {**function(gives('{"n": 1}'), root=root, extra=need), "n.json": NUMBER}

    packages = {
        "one": member("a.one@1", "a.two@1"),
        "two": member("a.two@1", "a.one@1"),
        "free": function(OK),
    }
    async with rig(tmp_path, packages=packages) as r:
        session = await r.session(packages=["one", "two", "free"])
        result = await session.play("go")
        assert ended(result) == {"free": "success", "one": "skipped", "two": "skipped"}
        assert reason(result, "one") == "dependency-cycle"
        graph = await session.turn(result["turn_id"]).query("graph")
        assert any("one" in said and "two" in said for said in graph["diagnostics"])


async def test_parallel_agents_of_a_stage_run_as_children_of_the_turn(tmp_path: Path) -> None:
    work = package(a=Ag("{stage: pre-turn}", "Prompt of A."), b=Ag("{stage: pre-turn}", "Prompt of B."))
    model = ModelServer(
        [Reply(text="I am A.", when="Prompt of A."), Reply(text="I am B.", when="Prompt of B.")]
    )
    async with rig(tmp_path, packages={"work": work}, model=model) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert ended(result) == {"work/a": "success", "work/b": "success"}
        assert result["usage"]["calls"] == 2


async def test_a_turn_without_a_story_commits(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": function(OK)}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert (result["status"], result["completed_player_turns"]) == ("committed", 1)
        assert "story" not in result


# Manual runs


MANUAL = package(
    "",
    {"runtimes/ask/payload.json": NUMBER},
    ask=Fn(
        "{trigger: {type: manual}}",
        gives('{"twice": ctx.manual_payload["n"] * 2}'),
        io="{payloadSchema: ./payload.json}",
    ),
    staged=Fn("{stage: pre-turn}"),
)


async def test_a_manual_run_returns_its_output_and_does_not_count_as_a_turn(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": MANUAL}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.update(
            names.RUN, {"action_id": "m1", "runtime_id": "work/ask", "payload": {"n": 21}}
        )
        result = await session.result(receipt)
        assert (result["status"], result["output"]) == ("committed", {"twice": 42})
        assert ended(result) == {"work/ask": "success"}
        async with r.store.read() as conn:
            assert (await sessions.require(conn, session.session_id)).completed_player_turns == 0


async def test_a_payload_that_breaks_its_schema_fails_the_run_by_name(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": MANUAL}) as r:
        session = await r.session(packages=["work"])
        run = {"action_id": "m1", "runtime_id": "work/ask", "payload": {"n": "many"}}
        result = await session.result(await session.update(names.RUN, run))
        assert ended(result) == {"work/ask": "failed"}
        assert reason(result, "work/ask") == "runtime.payload-invalid"


@pytest.mark.parametrize(
    ("runtime_id", "code"), [("work/nope", "runtime.unknown"), ("work/staged", "runtime.not-manual")]
)
async def test_what_cannot_run_by_hand_is_refused_by_name(tmp_path: Path, runtime_id: str, code: str) -> None:
    async with rig(tmp_path, packages={"work": MANUAL}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.update(names.RUN, {"action_id": "m1", "runtime_id": runtime_id})
        with pytest.raises(WorkflowFailureError) as failed:
            await session.result(receipt)
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == code
        assert "work/ask" in failed.value.cause.message
        state = await session.until(lambda state: state["running"] is None)
        assert [notice["code"] for notice in state["notices"]] == [code]
        async with r.store.read() as conn:
            assert await turns.get_turn(conn, receipt["turn_id"]) is None
        assert (await session.play("go"))["status"] == "committed"
