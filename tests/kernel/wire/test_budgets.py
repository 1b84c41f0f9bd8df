"""No payload that grows with runs, jobs or questions passes the converter's limit, whatever its texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.errors import Code
from kernel.session.checks import MAX_QUEUE
from kernel.session.state import KEPT_ACTIONS, KEPT_APPROVALS, KEPT_NOTICES, MAX_APPROVALS, MAX_CARRIED_JOBS
from kernel.wire import budgets
from kernel.wire.approvals import Approval
from kernel.wire.base import MAX_OUTLINE, Wire
from kernel.wire.nodes import NodeState
from kernel.wire.session import (
    Clock,
    LastTurn,
    Notice,
    OpenJob,
    QueuedAction,
    SessionSnapshot,
    SessionView,
)
from kernel.wire.turn import CommitTurn, GraphView, JobRef, RunOutcome, Story, TurnResult
from kernel.wire.usage import UsageTotals
from link.converter import WirePayloadConverter

LONGEST_REASON = max(Code, key=len).value
NOW = 1_764_562_304.123456
MOST_MS = 2_147_483_647
USAGE = UsageTotals(
    calls=99, unknown=9, input_tokens=9_999_999, output_tokens=999_999, cost_usd=99.000000001, unpriced=99
)

texts = st.one_of(
    st.sampled_from(["", "x", "言" * MAX_OUTLINE, "\x01" * MAX_OUTLINE, '"' * MAX_OUTLINE]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=MAX_OUTLINE),
)
many_texts = st.lists(texts, min_size=1, max_size=6)
worst = "\x01" * MAX_OUTLINE


def encoded(value: Wire) -> int:
    """The bytes that the converter makes of a value; it raises past 256 KiB."""
    [payload] = WirePayloadConverter().to_payloads([value])
    return len(payload.data)


def runtime(number: int) -> str:
    """A runtime id as long as ids get."""
    return f"{'p' * 64}/{number:064}"


def runs(count: int, messages: list[str]) -> list[RunOutcome]:
    return [
        RunOutcome(
            runtime_id=runtime(number),
            status="suspended",
            reason=LONGEST_REASON,
            message=messages[number % len(messages)],
        )
        for number in range(count)
    ]


def graph(count: int, messages: list[str], edges: int = 0) -> GraphView:
    nodes = tuple(
        NodeState(
            runtime_id=runtime(number),
            stage="post-turn",
            kind="function",
            status="suspended",
            reason=LONGEST_REASON,
            message=messages[number % len(messages)],
            started_at=NOW,
            ended_at=NOW,
            usage=USAGE,
        )
        for number in range(count)
    )
    return GraphView(
        turn_id="t" * 21,
        session_id="s" * 200,
        status="committed",
        logical_turn=1,
        nodes=nodes,
        edges=tuple((runtime(number), runtime(number + 1)) for number in range(edges)),
        diagnostics=tuple(messages),
    )


def approval(number: int, **more: Any) -> Approval:
    run = runtime(number)
    return Approval(
        ref=f"a{number:020}",
        turn_id="t" * 21,
        runtime_id=run,
        call_id=f"c{number:040}",
        tool="t" * 64,
        workflow_id=f"agent/{'t' * 21}/{run.replace('/', '%2F')}",
        arguments=worst,
        opened_at=NOW,
        deadline=NOW,
        **more,
    )


def job(number: int) -> OpenJob:
    ref = JobRef(
        job_id=f"j{number:020}",
        turn_id="t" * 21,
        runtime_id=runtime(number),
        settle=True,
        max_settle_wait_ms=MOST_MS,
        max_queue_ms=MOST_MS,
        max_execution_ms=MOST_MS,
    )
    return OpenJob(job=ref, started_at=NOW)


def action(number: int) -> QueuedAction:
    return QueuedAction(action_id=f"{number:0200}", turn_id="t" * 21, origin="continuation")


def full(jobs: int) -> dict[str, Any]:
    """Every list of a session at its cap."""
    closed = [approval(number, status="withdrawn") for number in range(KEPT_APPROVALS)]
    open_ = [approval(100 + number, status="open") for number in range(MAX_APPROVALS)]
    return {
        "status": "paused",
        "queue": tuple(action(number) for number in range(MAX_QUEUE)),
        "revision": MOST_MS,
        "jobs": tuple(job(number) for number in range(jobs)),
        "approvals": (*closed, *open_),
        "notices": (Notice(code=Code(LONGEST_REASON), message=worst),) * KEPT_NOTICES,
        "last_turn": LastTurn(turn_id="t" * 21, status="committed", message=worst),
    }


def session(jobs: int) -> SessionView:
    clock = {"phase": "playing", "completed_player_turns": MOST_MS}
    return SessionView(session_id="s" * 200, running=action(0), **clock, **full(jobs))


def snapshot(jobs: int) -> SessionSnapshot:
    return SessionSnapshot(
        incarnation="i" * 12,
        clock=Clock(completed_player_turns=MOST_MS),
        recent=tuple(action(number) for number in range(KEPT_ACTIONS)),
        ending=False,
        **full(jobs),
    )


@settings(max_examples=15, deadline=None)
@given(messages=many_texts)
def test_a_thousand_outcomes_fit_in_a_commit_and_in_a_result(messages: list[str]) -> None:
    kept = budgets.outcomes(runs(1_000, messages))
    encoded(CommitTurn(session_id="s" * 200, turn_id="t" * 21, incarnation="i" * 12, runs=kept))
    story = Story(runtime_id=runtime(0), text="言" * (8 * 1024 // 3))
    turn = {"session_id": "s" * 200, "turn_id": "t" * 21, "message": worst, "usage": USAGE}
    encoded(TurnResult(status="committed", story=story, runs=kept, **turn))
    assert [(run.runtime_id, run.status, run.reason) for run in kept] == [
        (run.runtime_id, run.status, run.reason) for run in runs(1_000, messages)
    ]


def test_messages_that_do_not_fit_are_cut_from_the_end_and_say_so() -> None:
    kept = budgets.outcomes(runs(420, ["言" * MAX_OUTLINE]))
    whole = [run.message != budgets.CUT for run in kept]
    assert 20 < whole.count(True) < 420
    assert whole == sorted(whole, reverse=True)


@settings(max_examples=20, deadline=None)
@given(messages=many_texts, count=st.integers(0, 3_000), edges=st.integers(0, 3_000))
def test_a_graph_always_fits(messages: list[str], count: int, edges: int) -> None:
    assert encoded(budgets.graph_view(graph(count, messages, edges))) <= budgets.VIEW_BYTES


def test_a_graph_that_is_cut_tells_how_much_of_it_is_shown() -> None:
    view = budgets.graph_view(graph(600, [worst], edges=3_000))
    assert len(view.nodes) == 600
    assert view.nodes[-1].message == budgets.CUT
    assert view.diagnostics[-1].startswith("too large to show whole: 600 of 600 runtimes, ")
    assert view.diagnostics[-1].endswith(" of 3000 edges")


@pytest.mark.parametrize("jobs", [0, 48, 300, 1_000])
def test_a_full_session_fits_in_its_view(jobs: int) -> None:
    view = budgets.session_view(session(jobs))
    assert encoded(view) <= budgets.VIEW_BYTES
    assert len(view.approvals) == KEPT_APPROVALS + MAX_APPROVALS
    if len(view.jobs) < jobs:
        assert view.notices[-1].message == f"{len(view.jobs)} of {jobs} jobs are shown"


@settings(max_examples=25, deadline=None)
@given(jobs=st.integers(0, MAX_CARRIED_JOBS), dropped=st.sets(st.sampled_from(["notices", "recent"])))
def test_a_full_snapshot_keeps_what_it_must_and_fits(jobs: int, dropped: set[str]) -> None:
    whole = snapshot(jobs).model_copy(update=dict.fromkeys(dropped, ()))
    kept = budgets.snapshot(whole)
    assert encoded(kept) <= budgets.SNAPSHOT_BYTES
    assert (kept.queue, kept.jobs, kept.last_turn) == (whole.queue, whole.jobs, whole.last_turn)
    open_ = [one.ref for one in whole.approvals if one.status == "open"]
    assert [one.ref for one in kept.approvals if one.status == "open"] == open_


def test_a_snapshot_forgets_the_oldest_closed_approvals_first() -> None:
    closed = tuple(approval(number, status="denied") for number in range(KEPT_APPROVALS))
    whole = SessionSnapshot(incarnation="i", approvals=closed, recent=(action(1),))
    kept = budgets.snapshot(whole)
    assert 0 < len(kept.approvals) < len(closed)
    assert kept.approvals == closed[-len(kept.approvals) :]
    assert kept.recent == whole.recent


def test_what_fits_is_passed_on_untouched() -> None:
    view, small = graph(20, ["言" * MAX_OUTLINE], edges=19), runs(20, ["a message"])
    assert budgets.graph_view(view) is view
    assert budgets.outcomes(small) == tuple(small)
    state, carried = session(0).model_copy(update={"approvals": ()}), snapshot(0)
    assert budgets.session_view(state) is state
    carried = carried.model_copy(update={"approvals": ()})
    assert budgets.snapshot(carried) is carried
