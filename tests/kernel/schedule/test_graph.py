"""Planning: selection, links, cycles, hazards, detached. Spec: plugin-model §4 to §6, §18."""

from __future__ import annotations

import sys

import pytest

from kernel.errors import Code, TurnwrightError
from kernel.schedule.graph import Graph, build
from kernel.schedule.reasons import Finding
from kernel.wire.turn import DetachedPlan, Edge
from tests.kernel.schedule.plans import AGENT, graph, on, play, runtime, statuses, taking, turn


def findings(plan: Graph) -> list[tuple[Finding, tuple[str, ...]]]:
    return [(diagnostic.finding, diagnostic.runtimes) for diagnostic in plan.diagnostics]


# Selection


@pytest.mark.parametrize(
    ("every", "logical_turn", "runs"),
    [(1, 1, True), (2, 1, False), (2, 2, True), (3, 7, False), (3, 9, True)],
)
def test_every_runs_on_its_multiples(every: int, logical_turn: int, runs: bool) -> None:
    assert ("p" in graph(runtime("p", every=every), logical_turn=logical_turn).nodes) is runs


def test_manual_and_event_runtimes_are_not_selected() -> None:
    assert graph(runtime("p", stage=None)) == Graph({}, ())


def test_stages_come_in_the_order_of_a_turn_and_empty_ones_not_at_all() -> None:
    plan = graph(runtime("z", "audit"), runtime("y", "narrative"), runtime("x", "setup"))
    assert [batch.stage for batch in plan.stages] == ["setup", "narrative", "audit"]
    assert list(plan.nodes) == ["x", "y", "z"]


def test_a_manual_run_is_that_one_node_without_gates() -> None:
    plan = graph(runtime("a"), runtime("m", stage=None, needs=["a", "x@1"]), manual="m")
    assert list(plan.nodes) == ["m"]
    assert plan.stages[0].stage is None
    progress, waves = play(plan)
    assert waves == [["m"]]
    assert progress.upstream("m") == ()


def test_an_unknown_manual_runtime_is_refused() -> None:
    with pytest.raises(TurnwrightError) as refusal:
        graph(runtime("a"), manual="m")
    assert refusal.value.code == Code.RUNTIME_UNKNOWN


def test_a_runtime_of_a_stage_is_not_run_by_hand() -> None:
    with pytest.raises(TurnwrightError) as refusal:
        graph(runtime("a"), runtime("m", stage=None), manual="a")
    assert (refusal.value.code, refusal.value.accepted) == (Code.RUNTIME_NOT_MANUAL, "m")


def test_two_active_stories_are_refused_by_name() -> None:
    with pytest.raises(TurnwrightError, match="q/s and r/s") as refusal:
        graph(runtime("r/s", story=True), runtime("q/s", story=True))
    assert refusal.value.code == Code.ACTIVATION_TWO_STORIES


# Links


def test_links_keep_declaration_order_and_edges_are_sorted() -> None:
    plan = graph(
        runtime("p/b", output="x@1", stage="pre-turn"),
        runtime("p/a", stage="pre-turn"),
        runtime("p/z", needs=["p/b"], after=["p/a"], inputs={"one": taking("x@1"), "two": taking("p/a")}),
    )
    assert [link.label for link in plan.nodes["p/z"].links] == [
        "needs p/b",
        "after p/a",
        "input one (x@1)",
        "input two (p/a)",
    ]
    assert plan.edges == (("p/a", "p/z"), ("p/b", "p/z"))


def test_a_contract_leads_to_its_providers_of_this_stage_or_an_earlier_one() -> None:
    plan = graph(
        runtime("early", "pre-turn", output="x@1"),
        runtime("same", output="x@1"),
        runtime("late", "audit", output="x@1"),
        runtime("by-hand", None, output="x@1"),
        runtime("resting", every=2, output="x@1"),
        runtime("z", needs=["x@1"]),
    )
    link = plan.nodes["z"].links[0]
    assert (link.runtimes, link.absent) == (("early", "same"), ("resting",))
    assert findings(plan) == []


def test_a_contract_leads_to_the_provider_that_was_decided_on() -> None:
    given = [runtime(f"{name}/r", "pre-turn", output="a.b@1") for name in ("p", "q")]
    needy = runtime("z", needs=[Edge(contract="a.b@1", provider="q")])
    assert graph(*given, needy).nodes["z"].upstreams == ("q/r",)


def test_a_later_stage_never_unlocks_an_earlier_one() -> None:
    plan = graph(runtime("late", "audit"), runtime("z", needs=["late"], after=["late"]))
    assert plan.edges == ()
    assert findings(plan) == [(Finding.LATER_STAGE, ("z", "late"))]
    assert statuses(play(plan)[0]) == {"late": "success", "z": "skipped"}


def test_an_unknown_runtime_is_nobody() -> None:
    assert graph(runtime("z", after=["gone"])).nodes["z"].links[0].runtimes == ()


# Cycles


def test_a_cycle_and_what_waits_behind_it_are_skipped_and_the_path_is_printed() -> None:
    plan = graph(
        runtime("p/a", needs=["y@1"], output="x@1"),
        runtime("q/b", needs=["x@1"], output="y@1"),
        runtime("r/behind", after=["x@1"]),
        runtime("s/free"),
        runtime("t/later", "audit", after=["y@1"]),
        runtime("u/needy", "audit", needs=["y@1"]),
    )
    assert findings(plan) == [(Finding.CYCLE, ("p/a", "q/b"))]
    assert "p/a → q/b → p/a" in str(plan.diagnostics[0])
    progress, _ = play(plan)
    reasons = {run.runtime_id: run.reason for run in progress.outcomes()}
    assert reasons == {
        "s/free": "",
        "p/a": "dependency-cycle",
        "q/b": "dependency-cycle",
        "r/behind": "dependency-cycle",
        "t/later": "",
        "u/needy": "upstream-not-success",
    }
    assert "behind" in plan.nodes["r/behind"].blocked


def test_an_earlier_provider_removes_a_false_cycle() -> None:
    plan = graph(
        runtime("early", "pre-turn", output="x@1"),
        runtime("p/a", needs=["x@1"], output="y@1"),
        runtime("q/b", needs=["y@1"], output="x@1"),
    )
    assert findings(plan) == [(Finding.ALTERNATIVE_DROPPED, ("p/a",))]
    assert play(plan)[1] == [["early"], ["p/a"], ["q/b"]]


@pytest.mark.parametrize(
    "links",
    [
        {"after": [on("x@1")]},
        {"needs": [on("x@1", "all")]},
        {"inputs": {"x": taking("x@1")}},
    ],
    ids=["after", "all", "input"],
)
def test_it_removes_no_other_edge(links: dict) -> None:
    plan = graph(
        runtime("early", "pre-turn", output="x@1"),
        runtime("p/a", output="y@1", **links),
        runtime("q/b", needs=["y@1"], output="x@1"),
    )
    assert findings(plan) == [(Finding.CYCLE, ("p/a", "q/b"))]


# Hazards


def write(runtime_id: str, *effects: str, **fields: object):
    return runtime(runtime_id, writes=effects, **fields)


@pytest.mark.parametrize(
    ("one", "other", "hazard"),
    [
        ({"writes": ["state:*"]}, {"writes": ["state:*"]}, True),
        ({"writes": ["state:*"]}, {"reads": ["state:*"]}, True),
        ({"reads": ["state:*"]}, {"reads": ["state:*"]}, False),
        ({"writes": ["state:*"]}, {"reads": ["state:hp"]}, True),
        ({"reads": ["state:hp"]}, {"writes": ["state:*"]}, True),
        ({"writes": ["state:hp"]}, {"writes": ["state:mp"]}, False),
        ({"writes": ["state:*"]}, {"writes": ["ui:*"]}, False),
        ({"writes": ["plugin-data:self:x"]}, {"writes": ["plugin-data:self:x"]}, False),
        ({"writes": ["plugin-data:self:x"]}, {"reads": ["plugin-data:p:x"]}, True),
        ({"writes": ["event:a"]}, {"writes": ["event:a"]}, True),
        ({"writes": ["unknown:*"]}, {"reads": ["lorebook:*"]}, True),
        ({"reads": ["unknown:*"]}, {"reads": ["lorebook:*"]}, False),
        ({"writes": ["state:*"]}, {}, False),
        ({"writes": ["state:*"], "parallel_safe": True}, {"writes": ["state:*"]}, True),
        ({"writes": ["s:*"], "parallel_safe": True}, {"writes": ["s:*"], "parallel_safe": True}, False),
    ],
)
def test_effects_that_meet_are_serialised(one: dict, other: dict, hazard: bool) -> None:
    plan = graph(runtime("q/b", **other), runtime("p/a", **one))
    assert plan.hazards == ((("p/a", "q/b"),) if hazard else ())
    assert len(plan.diagnostics) == len(plan.hazards)


def test_runtimes_of_one_package_share_its_data() -> None:
    plan = graph(write("p/b", "plugin-data:self:x"), write("p/a", "plugin-data:self:x"))
    assert plan.hazards == (("p/a", "p/b"),)
    assert "plugin-data:p:x" in str(plan.diagnostics[0])


def test_a_row_of_writers_becomes_a_chain() -> None:
    plan = graph(*(write(name, "state:*") for name in "dbca"))
    assert plan.hazards == (("a", "b"), ("b", "c"), ("c", "d"))
    assert play(plan)[1] == [["a"], ["b"], ["c"], ["d"]]


def test_a_path_orders_already_even_against_code_points() -> None:
    plan = graph(write("a", "state:*", after=["m"]), runtime("m", after=["z"]), write("z", "state:*"))
    assert plan.hazards == ()


def test_hazards_never_close_a_circle_with_links() -> None:
    plan = graph(
        write("a", "state:*", after=["c"]),
        write("b", "state:*", "ui:*"),
        write("c", "ui:*"),
    )
    # a → b by code point; b → c would then be a circle, and c → a → b orders that pair already.
    assert plan.hazards == (("a", "b"),)
    assert play(plan)[1] == [["c"], ["a"], ["b"]]


def test_stages_do_not_meet() -> None:
    assert graph(write("a", "state:*"), write("b", "state:*", stage="audit")).hazards == ()


def test_a_hazard_orders_without_visibility() -> None:
    plan = graph(write("a", "state:*"), write("b", "state:*"), runtime("c", after=["b"]))
    progress, waves = play(plan, {"a": "failed"})
    assert waves == [["a"], ["b"], ["c"]]
    progress, _ = play(plan)
    assert progress.upstream("b") == ()
    assert progress.upstream("c") == ("b",)


# Detached


def detached(**fields: object):
    return runtime("d", **{"writes": ["ui:*"], "detached": DetachedPlan(), **fields})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, None),
        ({"writes": ["plugin-data:self:x", "http:https://a.b", "assets:*", "media:*"]}, None),
        ({"stage": "audit", "writes": []}, None),
        ({"agent": AGENT}, "only a function"),
        ({"stage": "narrative"}, "only post-turn and audit"),
        ({"exports": True}, "recordAs"),
        ({"declares_effects": False, "writes": []}, "declares no effects"),
        ({"writes": ["state:*"]}, "writes state:*"),
        ({"writes": ["event:dawn"]}, "writes event:dawn"),
        ({"writes": ["plugin-data:self:_jobs"]}, "writes plugin-data:self:_jobs"),
    ],
)
def test_detached_runtimes_leave_the_turn_when_eligible(fields: dict, why: str | None) -> None:
    plan = graph(detached(**fields))
    assert plan.nodes["d"].deferrable is (why is None)
    assert [d.finding for d in plan.diagnostics] == ([Finding.NOT_DETACHED] if why else [])
    assert why is None or why in str(plan.diagnostics[0])


def test_a_detached_runtime_that_somebody_waits_for_stays() -> None:
    plan = graph(detached(), runtime("z", after=["d"]), runtime("y", after=["d"]))
    assert "y waits for it" in str(plan.diagnostics[0])
    assert statuses(play(plan)[0])["d"] == "success"


def test_a_deferred_runtime_holds_nobody_back() -> None:
    plan = graph(detached(), write("e", "ui:*"))
    assert plan.hazards == ()
    progress, waves = play(plan)
    assert waves == [["e"]]
    assert progress.deferred == ("d",)
    assert [run.runtime_id for run in progress.outcomes()] == ["e"]


def test_a_deferred_runtime_passes_its_gates_first() -> None:
    plan = graph(runtime("a"), detached(needs=["a"]))
    assert play(plan)[0].deferred == ("d",)
    assert play(plan)[0].upstream("d") == ("a",)
    assert statuses(play(plan, {"a": "failed"})[0])["d"] == "skipped"


# Size


def test_the_work_of_planning_grows_with_the_number_of_runtimes() -> None:
    assert _work(1000) < 2.2 * _work(500)


def _work(count: int) -> int:
    """Python calls that planning a chain of so many runtimes takes."""
    names = [f"p{n}/r" for n in range(count)]
    plans = turn(*(runtime(name, needs=names[n - 1 : n]) for n, name in enumerate(names)))
    calls = 0

    def count_call(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_call)
    try:
        graph = build(plans)
    finally:
        sys.setprofile(None)
    assert len(graph.nodes) == count
    return calls
