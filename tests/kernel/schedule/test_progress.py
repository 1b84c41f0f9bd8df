"""A turn while it runs. Spec: plugin-model §3, step 7; DECISIONS 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.errors import Code, TurnwrightError
from kernel.schedule.graph import Graph, build
from kernel.schedule.order import topological
from kernel.schedule.progress import Progress
from kernel.schedule.reasons import SkipReason
from kernel.wire.nodes import STAGES
from kernel.wire.turn import DetachedPlan, PlanInput, RuntimePlan
from kernel.wire.usage import UsageTotals
from tests.kernel.schedule.plans import AGENT, graph, on, outcome, play, runtime, statuses, taking

ENDS = ("success", "failed", "skipped", "suspended")


def test_a_node_starts_when_its_own_gates_open_not_when_its_layer_does() -> None:
    progress = Progress(graph(runtime("a"), runtime("b"), runtime("c", needs=["a"])))
    stages = progress.stages()
    next(stages)
    assert progress.ready() == ["a", "b"]
    assert progress.ready() == []
    progress.settle("a", "success")
    assert progress.ready() == ["c"]
    assert progress.running == ("b", "c")
    assert not progress.stage_done()


def test_a_stage_waits_for_all_of_the_one_before() -> None:
    progress = Progress(graph(runtime("a", "pre-turn"), runtime("z", "narrative")))
    stages = progress.stages()
    assert next(stages).stage == "pre-turn"
    assert progress.ready() == ["a"]
    with pytest.raises(TurnwrightError, match="left before it was done"):
        next(stages)


def test_a_skip_spreads_at_once_through_a_long_chain() -> None:
    names = [f"{n:04}" for n in range(3000)]
    plan = graph(*(runtime(name, needs=names[n - 1 : n] if n else ()) for n, name in enumerate(names)))
    progress, waves = play(plan, {"0000": "failed"})
    assert waves == [["0000"]]
    assert {run.reason for run in progress.outcomes()[1:]} == {"upstream-not-success"}


def test_what_a_node_may_read_are_its_ancestors_successes_whoever_else_is_done() -> None:
    plan = graph(
        runtime("far", "pre-turn"),
        runtime("near", after=["far"]),
        runtime("other"),
        runtime("z", "audit", after=["near"]),
    )
    assert play(plan)[0].upstream("z") == ("far", "near")
    assert play(plan, {"near": "failed"})[0].upstream("z") == ("far",)


def test_outcomes_come_in_commit_order() -> None:
    plan = graph(runtime("z", "pre-turn"), runtime("b", after=["c"]), runtime("a", after=["b"]), runtime("c"))
    progress, _ = play(plan, {"c": "failed"})
    assert [run.runtime_id for run in progress.outcomes()] == ["z", "c", "b", "a"]


def test_people_see_times_costs_and_reasons() -> None:
    progress = Progress(graph(runtime("a", agent=AGENT), runtime("b", needs=["a"])))
    next(progress.stages())
    assert [state.status for state in progress.nodes] == ["waiting", "waiting"]
    progress.ready(at=10.0)
    progress.settle("a", "failed", Code.MODEL_AUTH, "x" * 400, usage=UsageTotals(calls=1), at=12.5)
    one, other = progress.nodes
    assert (one.kind, one.stage, one.started_at, one.ended_at) == ("agent", "post-turn", 10.0, 12.5)
    assert (one.reason, len(one.message), one.usage.calls) == ("model.auth", 300, 1)
    assert (other.kind, other.status, other.message) == ("function", "skipped", "needs a: a failed")
    assert progress.edges == (("a", "b"),)


@pytest.mark.parametrize("status", ENDS)
def test_a_node_settles_once(status: str) -> None:
    progress = Progress(graph(runtime("a")))
    with pytest.raises(TurnwrightError, match="without running"):
        progress.settle("a", status)
    next(progress.stages())
    progress.ready()
    progress.settle("a", status)
    with pytest.raises(TurnwrightError, match="without running"):
        progress.settle("a", status)


def test_closing_a_turn_ends_every_node_and_every_stage() -> None:
    progress = Progress(
        graph(
            runtime("a", "pre-turn"),
            runtime("b"),
            runtime("c"),
            runtime("d", "audit"),
            runtime("e", "pre-turn"),
        )
    )
    for stage in progress.stages():
        if stage.stage == "pre-turn":
            progress.ready()
            progress.settle("a", "success")
            progress.close(message="a person stopped the turn")
        assert progress.stage_done()
        assert progress.ready() == []
    assert statuses(progress) == dict.fromkeys("ebcd", "skipped") | {"a": "success"}
    assert outcome(progress, "e").reason == SkipReason.TURN_STOPPED


def test_an_empty_turn_has_no_stage() -> None:
    progress = Progress(build(PlanInput(logical_turn=1)))
    assert list(progress.stages()) == []
    assert progress.outcomes() == ()


# Any graph at all

NAMES = [f"p{n}/r" for n in range(7)]
CONTRACTS = ["x@1", "y@1"]
TARGETS = st.sampled_from([*NAMES, *CONTRACTS])
EDGES = st.lists(st.builds(on, TARGETS, st.sampled_from(["one", "all"])), max_size=2)
INPUTS = st.dictionaries(
    st.sampled_from(["i", "j"]), st.builds(taking, TARGETS, required=st.booleans()), max_size=2
)
EFFECTS = st.lists(
    st.sampled_from(["state:*", "state:hp", "ui:*", "plugin-data:self:n"]), unique=True, max_size=2
)


@st.composite
def plans(draw: st.DrawFn) -> list[RuntimePlan]:
    chosen = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    return [
        runtime(
            name,
            draw(st.sampled_from([*STAGES, "post-turn", "post-turn", None])),
            every=draw(st.sampled_from([1, 1, 1, 2])),
            needs=draw(EDGES),
            after=draw(EDGES),
            inputs=draw(INPUTS),
            output=draw(st.sampled_from([None, *CONTRACTS])),
            reads=draw(EFFECTS),
            writes=draw(EFFECTS),
            declares_effects=draw(st.booleans()),
            parallel_safe=draw(st.booleans()),
            detached=draw(st.sampled_from([None, DetachedPlan()])),
        )
        for name in chosen
    ]


def play_at_random(plan: Graph, data: st.DataObject, ends: dict[str, str]) -> Progress:
    """Settle running nodes in any order, and check on the way what must always hold."""
    progress = Progress(plan)
    running: list[str] = []
    for stage in progress.stages():
        while not progress.stage_done():
            started = progress.ready()
            assert all(name in stage.runtime_ids for name in started), "the barrier leaks"
            for name in started:
                check_gates(plan, progress, name)
            running += started
            assert running, "the stage hangs"
            name = running.pop(data.draw(st.integers(0, len(running) - 1)))
            progress.settle(name, ends[name])
        assert not running
    return progress


def check_gates(plan: Graph, progress: Progress, name: str) -> None:
    now = statuses(progress)
    node = plan.nodes[name]
    assert all(now[up] in ENDS for up in (*node.upstreams, *node.hazards)), "started too early"
    for link in node.links:
        good = [now[up] == "success" for up in link.runtimes]
        assert not link.hard or (all(good) and good if link.every else any(good)), "a gate was passed"
    assert set(progress.upstream(name)) == {up for up in plan.ancestors(name) if now[up] == "success"}


@given(plans(), st.data())
def test_any_turn_ends_with_one_state_per_node_whatever_the_order(
    runtimes: list[RuntimePlan], data: st.DataObject
) -> None:
    ends = {name: data.draw(st.sampled_from(ENDS[:2])) for name in NAMES}
    plan = build(PlanInput(logical_turn=1, runtimes=tuple(runtimes)))
    progress = play_at_random(plan, data, ends)
    assert all(status in (*ENDS, "deferred") for status in statuses(progress).values())
    order = [*(run.runtime_id for run in progress.outcomes()), *progress.deferred]
    assert sorted(order) == sorted(plan.nodes)

    shuffled = data.draw(st.permutations(runtimes))
    again = build(PlanInput(logical_turn=1, runtimes=tuple(shuffled)))
    assert again == plan
    assert list(again.nodes) == list(plan.nodes)
    assert play_at_random(again, data, ends).outcomes() == progress.outcomes()


@given(plans())
def test_links_and_hazards_together_have_an_order(runtimes: list[RuntimePlan]) -> None:
    plan = build(PlanInput(logical_turn=1, runtimes=tuple(runtimes)))
    successors: dict[str, list[str]] = {}
    for first, second in (*plan.edges, *plan.hazards):
        successors.setdefault(first, []).append(second)
    free = [name for name, node in plan.nodes.items() if not node.blocked]
    assert topological(free, successors)[1] == []
    place = {name: n for n, name in enumerate(plan.nodes)}
    for first, second in (*plan.edges, *plan.hazards):
        assert plan.nodes[second].blocked or place[first] < place[second]
