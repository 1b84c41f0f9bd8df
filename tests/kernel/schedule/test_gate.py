"""Gates: the whole table of how upstreams join. Spec: plugin-model §5."""

from __future__ import annotations

import pytest

from kernel.schedule.gate import Run, Skip, Wait, gate
from kernel.schedule.graph import Node
from tests.kernel.schedule.plans import graph, on, runtime, taking

S, F, K, U = "success", "failed", "skipped", "suspended"
BOTH = (runtime("p/a", "pre-turn", output="x@1"), runtime("q/b", "pre-turn", output="x@1"))


def node(**links: object) -> Node:
    return graph(*BOTH, runtime("r/z", **links)).nodes["r/z"]


@pytest.mark.parametrize("status", [None, S, F, K, U])
@pytest.mark.parametrize(
    ("links", "opens_on"),
    [
        ({"needs": ["p/a"]}, {S}),
        ({"inputs": {"v": taking("p/a")}}, {S}),
        ({"after": ["p/a"]}, {S, F, K, U}),
        ({"inputs": {"v": taking("p/a", required=False)}}, {S, F, K, U}),
    ],
    ids=["needs", "input", "after", "optional"],
)
def test_one_upstream(links: dict, opens_on: set, status: str | None) -> None:
    verdict = gate(node(**links), {"p/a": status})
    if status is None:
        assert verdict == Wait(("p/a",))
    elif status in opens_on:
        assert verdict == Run(("p/a",) if status == S else ())
    else:
        assert isinstance(verdict, Skip)


@pytest.mark.parametrize(
    ("a", "b", "one", "every"),
    [
        (S, S, True, True),
        (S, F, True, False),
        (S, K, True, False),
        (K, S, True, False),
        (F, F, False, False),
        (K, U, False, False),
    ],
)
def test_several_providers_of_a_contract(a: str, b: str, one: bool, every: bool) -> None:
    ends = {"p/a": a, "q/b": b}
    for kind in ("needs", "input"):
        for cardinality, opens in (("one", one), ("all", every)):
            edge = on("x@1", cardinality)
            links = (
                {"needs": [edge]}
                if kind == "needs"
                else {"inputs": {"v": taking("x@1", cardinality=cardinality)}}
            )
            assert isinstance(gate(node(**links), ends), Run) is opens, (kind, cardinality)


def test_one_provider_waits_for_the_others_all_the_same() -> None:
    assert gate(node(needs=["x@1"]), {"p/a": S}) == Wait(("q/b",))


@pytest.mark.parametrize(
    ("links", "reason", "message"),
    [
        ({"needs": ["nobody@1"]}, "upstream-not-success", "needs nobody@1: nothing that is active"),
        ({"needs": ["p/gone"]}, "upstream-not-success", "needs p/gone: p/gone does not run in this turn"),
        ({"needs": [on("nobody@1", "all")]}, "upstream-not-success", "nothing that is active"),
        ({"inputs": {"v": taking("nobody@1")}}, "input-missing", "input v (nobody@1): nothing"),
        ({"inputs": {"v": taking("p/a")}}, "input-missing", "input v (p/a): p/a was skipped"),
        ({"needs": ["x@1"]}, "upstream-not-success", "p/a was skipped, q/b failed"),
        ({"inputs": {"v": taking("p/a")}, "needs": ["q/b"]}, "upstream-not-success", "q/b failed"),
        ({"inputs": {"w": taking("q/b"), "v": taking("p/a")}}, "input-missing", "input w"),
    ],
)
def test_the_first_reason_in_declaration_order(links: dict, reason: str, message: str) -> None:
    verdict = gate(node(**links), {"p/a": K, "q/b": F})
    assert isinstance(verdict, Skip)
    assert verdict.reason == reason
    assert message in verdict.message


def test_all_misses_a_provider_that_rests_in_this_turn() -> None:
    resting = runtime("s/c", "pre-turn", every=2, output="x@1")
    plan = graph(*BOTH, resting, runtime("r/z", needs=[on("x@1", "all")], after=["x@1"]))
    verdict = gate(plan.nodes["r/z"], {"p/a": S, "q/b": S})
    assert isinstance(verdict, Skip)
    assert verdict.message == "needs x@1: s/c does not run in this turn"


@pytest.mark.parametrize(
    "links", [{"after": ["nobody@1"]}, {"inputs": {"v": taking("no@1", required=False)}}]
)
def test_an_absent_upstream_that_only_orders_is_no_matter(links: dict) -> None:
    assert gate(node(**links), {}) == Run(())


def test_a_run_may_read_every_success_it_was_shown() -> None:
    ends = {"p/a": F, "q/b": S, "far/up": S}
    assert gate(node(after=["p/a", "q/b"]), ends) == Run(("far/up", "q/b"))
