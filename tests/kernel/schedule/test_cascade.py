"""What a commit drops with a dropped runtime. Spec: plugin-model §20, step 4."""

from __future__ import annotations

import pytest

from kernel.schedule.cascade import Cascade, cascade
from kernel.schedule.graph import Graph
from kernel.wire.turn import DetachedPlan
from tests.kernel.schedule.plans import graph, on, play, runtime, taking


def after_dropping(plan: Graph, *dropped: str, ends: dict | None = None) -> Cascade:
    progress, _ = play(plan, ends)
    return cascade(plan, progress.outcomes(), dropped, progress.deferred)


def dropped_with_a(**links: object) -> list[str]:
    plan = graph(
        runtime("a", "pre-turn", output="x@1"),
        runtime("b", "pre-turn", output="x@1"),
        runtime("z", **links),
    )
    return [drop.runtime_id for drop in after_dropping(plan, "a").drops]


@pytest.mark.parametrize(
    ("links", "falls"),
    [
        ({"needs": ["a"]}, True),
        ({"inputs": {"v": taking("a")}}, True),
        ({"needs": [on("x@1", "all")]}, True),
        ({"after": ["a"]}, False),
        ({"inputs": {"v": taking("a", required=False)}}, False),
        ({"needs": ["x@1"]}, False),
        ({"inputs": {"v": taking("x@1")}}, False),
        ({"needs": ["b"]}, False),
    ],
)
def test_hard_dependants_fall_and_others_stand(links: dict, falls: bool) -> None:
    assert dropped_with_a(**links) == (["z"] if falls else [])


def test_one_of_a_contract_falls_with_its_last_provider() -> None:
    plan = graph(runtime("a", output="x@1"), runtime("b", output="x@1"), runtime("z", needs=["x@1"]))
    assert after_dropping(plan, "a").drops == ()
    assert [drop.runtime_id for drop in after_dropping(plan, "a", "b").drops] == ["z"]
    assert [drop.runtime_id for drop in after_dropping(plan, "a", ends={"b": "failed"}).drops] == ["z"]


def test_it_goes_on_from_dependant_to_dependant_in_commit_order() -> None:
    plan = graph(
        runtime("z"), runtime("c", needs=["z"]), runtime("b", needs=["c"]), runtime("a", "audit", needs=["b"])
    )
    found = after_dropping(plan, "z")
    assert [drop.runtime_id for drop in found.drops] == ["c", "b", "a"]
    assert found.drops[0].message == "needs z was dropped at commit"
    assert found.drops[0].reason == "upstream-dropped"


def test_what_did_not_succeed_is_not_dropped() -> None:
    plan = graph(runtime("a"), runtime("b", needs=["a"]))
    assert after_dropping(plan, "a", ends={"b": "failed"}).drops == ()


@pytest.mark.parametrize(
    ("stage", "fields", "rejects"),
    [("narrative", {"story": True}, True), ("narrative", {}, False), ("setup", {}, True)],
)
def test_a_story_or_setup_that_loses_its_upstream_rejects_the_turn(
    stage: str, fields: dict, rejects: bool
) -> None:
    plan = graph(runtime("a", "setup"), runtime("s", stage, needs=["a"], **fields))
    found = after_dropping(plan, "a")
    assert found.rejects == (found.drops[0] if rejects else None)


def test_a_job_of_a_dropped_runtime_is_not_started() -> None:
    plan = graph(runtime("a"), runtime("d", needs=["a"], writes=["ui:*"], detached=DetachedPlan()))
    assert [drop.runtime_id for drop in after_dropping(plan, "a").drops] == ["d"]


def test_a_manual_run_depends_on_nobody() -> None:
    plan = graph(runtime("m", None, needs=["a"]), manual="m")
    assert after_dropping(plan).drops == ()
