"""The session's decisions: what is recorded, what comes next, what survives continue-as-new."""

from __future__ import annotations

from typing import Any

import pytest

from kernel import session as decide
from kernel.errors import Code, TurnwrightError
from kernel.session import SessionState
from kernel.session.checks import MAX_PENDING, MAX_QUEUE
from kernel.session.state import KEPT_APPROVALS, MAX_APPROVALS, MAX_CARRIED_JOBS
from kernel.wire.approvals import Approval
from kernel.wire.failure import Failure
from kernel.wire.ids import turn_id_for
from kernel.wire.session import (
    Applied,
    Clock,
    Configure,
    Control,
    Interject,
    Notice,
    OpenedSession,
    Resolve,
    Run,
    SessionSnapshot,
    Submit,
)
from kernel.wire.signals import Report
from kernel.wire.turn import JobRef, TurnResult

NOW = 1_000.0


def fresh(**snapshot: Any) -> SessionState:
    return SessionState("s", SessionSnapshot(incarnation="i", **snapshot))


def submit(state: SessionState, action_id: str = "a", text: str = "go") -> Any:
    message = Submit(action_id=action_id, text=text)
    decide.check_submit(state, message)
    return state.submit(message)


def stored(state: SessionState, *actions: str) -> SessionState:
    """Submit and store actions."""
    for action in actions:
        submit(state, action)
        order = state.next(NOW)
        assert isinstance(order, decide.StoreAction)
        state.stored(order, done=False)
    return state


def started(state: SessionState, action_id: str = "a") -> str:
    """Store an action and start its turn."""
    order = stored(state, action_id).next(NOW)
    assert isinstance(order, decide.StartTurn)
    state.turn_started(order.queued)
    return order.queued.turn_id


def committed(turn_id: str, **more: Any) -> TurnResult:
    return TurnResult(session_id="s", turn_id=turn_id, status="committed", completed_player_turns=1, **more)


def approval(ref: str = "r", deadline: float = NOW + 60, **more: Any) -> Approval:
    facts = {"turn_id": turn_id_for("s", "a"), "runtime_id": "p", "call_id": "c", "tool": "t"}
    return Approval(ref=ref, workflow_id="agent/x/y", opened_at=NOW, deadline=deadline, **{**facts, **more})


def refusal(call: Any) -> Code:
    with pytest.raises(TurnwrightError) as refused:
        call()
    assert refused.value.accepted or refused.value.code == Code.NOT_SUPPORTED
    return refused.value.code


# Actions


def test_an_action_is_stored_before_its_turn_starts() -> None:
    state = fresh()
    receipt = submit(state)
    assert (receipt.turn_id, receipt.position) == (turn_id_for("s", "a"), 0)
    order = state.next(NOW)
    assert isinstance(order, decide.StoreAction)
    assert order.submit == Submit(action_id="a", text="go")
    state.stored(order, done=False)
    assert isinstance(state.next(NOW), decide.StartTurn)


def test_the_same_action_twice_is_one_turn_with_one_receipt() -> None:
    state = fresh()
    assert submit(state) == submit(state)
    assert len(state.queue) == 1


def test_an_action_that_ended_long_ago_leaves_nothing_to_run() -> None:
    state = fresh()
    submit(state)
    state.stored(state.next(NOW), done=True)
    assert state.next(NOW) == decide.Wait(None)


def test_turns_run_one_at_a_time_in_order() -> None:
    state = fresh()
    turn_id = started(state)
    stored(state, "b")
    assert state.next(NOW) == decide.Wait(None)
    state.turn_ended(committed(turn_id))
    order = state.next(NOW)
    assert isinstance(order, decide.StartTurn)
    assert order.queued.action_id == "b"


def test_positions_count_the_running_turn() -> None:
    state = fresh()
    started(state)
    assert [submit(state, action).position for action in ("b", "c", "b", "a")] == [1, 2, 1, 0]


def test_a_run_is_stored_and_started_as_manual() -> None:
    state = fresh()
    message = Run(action_id="m", runtime_id="p/q", payload={"x": 1})
    decide.check_run(state, message)
    state.run(message)
    order = state.next(NOW)
    assert isinstance(order, decide.StoreAction)
    assert (order.run, order.submit, order.queued.origin) == (message, None, "manual")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Submit(action_id="x", text="a" * 65_537), Code.WIRE_TOO_LARGE),
        (Submit(action_id="x", text="é" * 40_000), Code.WIRE_TOO_LARGE),
        (Submit(action_id="x", text="a\0b"), Code.ACTION_INVALID),
        (Submit.model_construct(action_id="x", text="a\udc00", payload=None), Code.ACTION_INVALID),
        (Submit(action_id="x", text=" \n"), Code.ACTION_INVALID),
        (Submit(action_id="x", text="a", payload={"k": "b" * 70_000}), Code.WIRE_TOO_LARGE),
        (Submit(action_id="x", text="a", payload={"k": "\0"}), Code.ACTION_INVALID),
        (Submit(action_id=" x", text="a"), Code.SESSION_ID),
    ],
)
def test_a_bad_submission_is_refused_by_name(message: Submit, code: Code) -> None:
    assert refusal(lambda: decide.check_submit(fresh(), message)) == code


def test_a_payload_alone_is_an_action() -> None:
    decide.check_submit(fresh(), Submit(action_id="x", text="", payload={"choice": 1}))


def test_a_payload_may_speak_of_escapes() -> None:
    decide.check_submit(fresh(), Submit(action_id="x", text="", payload={"path": r"C:\ud8x \u0000"}))


def test_a_full_queue_refuses_what_is_new_and_repeats_what_is_known() -> None:
    state = fresh()
    for number in range(MAX_QUEUE):
        submit(state, f"a{number}")
    assert refusal(lambda: submit(state, "one more")) == Code.SESSION_QUEUE_FULL
    assert submit(state, "a3").position == 3


# Control


def test_a_paused_session_holds_its_queue_and_refuses_more() -> None:
    state = stored(fresh(), "a")
    state.control(Control(action="pause"))
    assert state.next(NOW) == decide.Mirror("paused")
    state.mirrored("paused")
    assert state.next(NOW) == decide.Wait(None)
    assert refusal(lambda: submit(state, "b")) == Code.SESSION_PAUSED
    state.control(Control(action="resume"))
    state.mirrored("active")
    assert isinstance(state.next(NOW), decide.StartTurn)


def test_an_ending_session_stops_its_turn_and_drops_its_queue() -> None:
    state = fresh()
    turn_id = started(state)
    stored(state, "b")
    state.control(Control(action="end"))
    assert state.next(NOW) == decide.StopTurn(turn_id, "the session was ended")
    state.stop_sent()
    assert state.next(NOW) == decide.Wait(None)
    state.turn_ended(TurnResult(session_id="s", turn_id=turn_id, status="stopped"))
    state.tick(NOW)
    assert state.next(NOW) == decide.Mirror("ended")
    state.mirrored("ended")
    assert state.next(NOW) == decide.End()
    assert refusal(lambda: submit(state, "c")) == Code.SESSION_ENDED


def test_a_queued_turn_is_cancelled_without_starting() -> None:
    state = fresh()
    started(state)
    receipt = submit(stored(state, "b"), "c")
    control = Control(action="cancel-turn", turn_id=receipt.turn_id)
    decide.check_control(state, control)
    state.control(control)
    assert [queued.action_id for queued in state.queue] == ["b"]
    assert receipt.turn_id in state.notices[-1].message
    order = state.next(NOW)
    assert isinstance(order, decide.NoteWithdrawal)
    assert order.queued.turn_id == receipt.turn_id
    state.noted(order)
    assert state.next(NOW) == decide.Wait(None)


def test_cancelling_what_does_not_run_is_refused() -> None:
    missing = Control(action="cancel-turn")
    assert refusal(lambda: decide.check_control(fresh(), missing)) == Code.TURN_UNKNOWN
    state = fresh()
    started(state)
    state.control(missing)
    assert isinstance(state.next(NOW), decide.StopTurn)


# Approvals


def test_an_approval_goes_to_the_inbox_and_the_answer_to_the_agent() -> None:
    state = fresh()
    state.report(Report(approval_opened=approval()))
    note = state.next(NOW)
    assert note == decide.NoteApproval(approval())
    state.noted(note)
    assert state.waiting_for() == ("r",)
    assert state.resolve(Resolve(ref="r", decision="approve", note="ok", actor="me")).outcome == "applied"
    forward = state.next(NOW)
    assert isinstance(forward, decide.Forward)
    assert (forward.workflow_id, forward.answer.status) == ("agent/x/y", "approved")
    state.noted(forward)
    note = state.next(NOW)
    assert isinstance(note, decide.NoteApproval)
    assert (note.approval.status, note.note, note.actor) == ("approved", "ok", "me")


def test_the_first_answer_wins() -> None:
    state = fresh()
    state.report(Report(approval_opened=approval()))
    state.resolve(Resolve(ref="r", decision="deny"))
    assert state.resolve(Resolve(ref="r", decision="approve")).outcome == "superseded"
    assert state.approvals["r"].status == "denied"


def test_an_unknown_approval_is_refused() -> None:
    assert refusal(lambda: fresh().resolve(Resolve(ref="x", decision="deny"))) == Code.APPROVAL_UNKNOWN


def test_a_deadline_closes_an_approval_as_expired() -> None:
    state = fresh()
    state.report(Report(approval_opened=approval(deadline=NOW + 5)))
    state.noted(state.next(NOW))
    assert state.next(NOW) == decide.Wait(NOW + 5)
    state.tick(NOW + 5)
    assert state.approvals["r"].status == "expired"
    assert state.resolve(Resolve(ref="r", decision="approve")).outcome == "superseded"


def test_the_end_of_a_turn_withdraws_what_it_asked() -> None:
    state = fresh()
    turn_id = started(state)
    state.report(Report(approval_opened=approval(turn_id=turn_id)))
    state.noted(state.next(NOW))
    state.turn_ended(committed(turn_id))
    assert state.approvals["r"].status == "withdrawn"
    assert isinstance(state.next(NOW), decide.NoteApproval)


def test_an_approval_that_is_told_twice_is_written_once() -> None:
    state = fresh()
    state.report(Report(approval_opened=approval()))
    state.report(Report(approval_opened=approval()))
    order = state.next(NOW)
    assert isinstance(order, decide.NoteApproval)
    state.noted(order)
    assert not isinstance(state.next(NOW), decide.NoteApproval)


# Jobs


def with_job(**options: Any) -> SessionState:
    state = fresh()
    turn_id = started(state)
    job = JobRef(job_id="j", turn_id=turn_id, runtime_id="p/d", **options)
    state.turn_ended(committed(turn_id, jobs=(job,)))
    order = state.next(NOW)
    assert order == decide.StartJob(job)
    state.job_started(job, NOW)
    return state


def test_the_next_action_waits_for_a_settling_job() -> None:
    state = stored(with_job(settle=True, max_settle_wait_ms=2_000), "b")
    assert state.next(NOW) == decide.Wait(NOW + 2)
    state.report(Report(job_ended="j", job_status="succeeded"))
    assert isinstance(state.next(NOW), decide.StartTurn)


def test_the_next_action_waits_no_longer_than_the_limit() -> None:
    state = stored(with_job(settle=True, max_settle_wait_ms=2_000), "b")
    order = state.next(NOW + 2)
    assert isinstance(order, decide.StartTurn)
    state.turn_started(order.queued)
    assert [notice.code for notice in state.notices] == [Code.SESSION_SETTLE_TIMEOUT]


def test_other_jobs_hold_nobody() -> None:
    assert isinstance(stored(with_job(), "b").next(NOW), decide.StartTurn)


def test_a_silent_job_is_asked_for_once_and_then_forgotten_when_dead() -> None:
    state = with_job(max_queue_ms=1_000, max_execution_ms=1_000)
    assert state.next(NOW + 10) == decide.Wait(None)
    order = state.next(NOW + 62)
    assert order == decide.Reconcile(("j",))
    state.reconciled(order, {"j": "its workflow is terminated"}, NOW + 62)
    assert not state.jobs
    assert state.notices[-1].code == Code.WORKFLOW_FAILED


def test_a_silent_job_that_still_runs_is_asked_for_again_after_another_grace_period() -> None:
    state = with_job(max_queue_ms=1_000, max_execution_ms=1_000)
    order = state.next(NOW + 62)
    assert isinstance(order, decide.Reconcile)
    state.reconciled(order, {}, NOW + 62)
    assert state.next(NOW + 63) == decide.Wait(None)
    assert state.next(NOW + 62 + 60) == decide.Reconcile(("j",))


def test_a_job_whose_workflow_failed_is_asked_for_at_once() -> None:
    state = with_job()
    state.job_lost("j")
    assert state.next(NOW) == decide.Reconcile(("j",))


def test_a_continued_session_wakes_to_ask_for_a_job_that_nobody_watches() -> None:
    snapshot = with_job(max_queue_ms=1_000, max_execution_ms=1_000).snapshot()
    started = snapshot.jobs[0].started_at
    assert started is not None
    assert SessionState("s", snapshot).next(NOW) == decide.Wait(started + 62)


# Configuration, interjections, failures


def test_a_configuration_is_applied_between_turns() -> None:
    state = fresh()
    turn_id = started(state)
    change = Configure(locale="de")
    decide.check_configure(state, change)
    assert state.configure(change) == 1
    assert state.next(NOW) == decide.Wait(None)
    state.turn_ended(committed(turn_id))
    order = state.next(NOW)
    assert order == decide.Apply(1, change)
    state.applied(order, Applied(refused=Failure(code=Code.PACKAGE_UNKNOWN, message="no package")))
    assert state.revision == 1
    assert state.notices == [Notice(code=Code.PACKAGE_UNKNOWN, message="no package", refused=1)]


def test_what_a_configuration_in_force_has_to_say_is_a_notice_that_refuses_nothing() -> None:
    state = fresh()
    state.configure(Configure(excluded=("dice",)))
    order = state.next(NOW)
    assert isinstance(order, decide.Apply)
    told = Notice(code=Code.ACTIVATION_EXCLUDED, message="package 'dice' is excluded")
    state.applied(order, Applied(notices=(told,)))
    assert state.notices == [told]


def test_a_configuration_that_changes_nothing_is_refused() -> None:
    assert refusal(lambda: decide.check_configure(fresh(), Configure())) == Code.ACTION_INVALID


def test_an_interjection_is_recorded_once_with_the_running_turn() -> None:
    state = fresh()
    turn_id = started(state)
    message = Interject(interjection_id="i", text="slower")
    decide.check_interject(state, message)
    assert state.interject(message) == state.interject(message) == turn_id
    order = state.next(NOW)
    assert order == decide.NoteInterjection(message, turn_id)
    state.noted(order)
    assert state.next(NOW) == decide.Wait(None)


def test_interjections_without_text_or_room_are_refused() -> None:
    state = fresh()
    blank = Interject(interjection_id="i", text=" ")
    assert refusal(lambda: decide.check_interject(state, blank)) == Code.ACTION_INVALID
    for number in range(MAX_PENDING):
        state.interject(Interject(interjection_id=str(number), text="x"))
    more = Interject(interjection_id="more", text="x")
    assert refusal(lambda: decide.check_interject(state, more)) == Code.SESSION_QUEUE_FULL


def test_a_failed_turn_leaves_a_notice_and_frees_the_session() -> None:
    state = fresh()
    turn_id = started(state)
    state.turn_ended(None, Failure(code=Code.STORE_UNREACHABLE, message="down"))
    assert state.last_turn is not None
    assert (state.last_turn.turn_id, state.last_turn.status) == (turn_id, "failed")
    assert state.notices[-1].code == Code.STORE_UNREACHABLE
    assert isinstance(stored(state, "b").next(NOW), decide.StartTurn)


# Continue-as-new


def test_a_session_renews_itself_only_between_turns_and_with_nothing_unwritten() -> None:
    state = fresh()
    turn_id = started(state)
    state.renew()
    stored(state, "b")
    assert state.next(NOW) == decide.Wait(None)
    state.turn_ended(committed(turn_id))
    submit(state, "c")
    assert isinstance(state.next(NOW), decide.StoreAction)
    state.stored(state.next(NOW), done=False)
    assert state.next(NOW) == decide.ContinueAsNew()


def test_the_snapshot_carries_everything_over() -> None:
    state = with_job(settle=True)
    stored(state, "b", "c")
    state.report(Report(approval_opened=approval()))
    state.noted(state.next(NOW))
    state.opened(OpenedSession(clock=Clock(completed_player_turns=7)))
    twin = SessionState("s", SessionSnapshot.model_validate_json(state.snapshot().model_dump_json()))
    assert twin.view() == state.view()
    assert twin.submit(Submit(action_id="b", text="go")) == state.submit(Submit(action_id="b", text="go"))
    assert twin.next(NOW) == state.next(NOW)


def test_withdrawn_approvals_are_forgotten_too() -> None:
    state = fresh()
    turn_id = started(state)
    for number in range(2 * MAX_APPROVALS - 1):
        state.report(Report(approval_opened=approval(ref=f"r{number}", turn_id=turn_id)))
        if number % 2:
            state.resolve(Resolve(ref=f"r{number}", decision="deny"))
    state.turn_ended(committed(turn_id))
    assert len(state.approvals) == KEPT_APPROVALS


def test_an_approval_past_the_cap_is_answered_at_once_and_never_opens() -> None:
    state = fresh()
    for number in range(MAX_APPROVALS + 1):
        state.report(Report(approval_opened=approval(ref=f"r{number}")))
    late = f"r{MAX_APPROVALS}"
    assert late not in state.approvals
    for _ in range(MAX_APPROVALS):
        noted = state.next(NOW)
        assert isinstance(noted, decide.NoteApproval)
        state.noted(noted)
    told = state.next(NOW)
    assert isinstance(told, decide.Forward)
    assert (told.answer.ref, told.answer.status) == (late, "refused")
    state.noted(told)
    state.resolve(Resolve(ref="r0", decision="deny"))
    state.report(Report(approval_opened=approval(ref=late)))
    assert state.approvals[late].status == "open"


def test_a_session_with_more_jobs_than_a_snapshot_holds_goes_on_in_the_same_run() -> None:
    state = fresh()
    jobs = tuple(JobRef(job_id=f"j{n}", turn_id="t", runtime_id="p") for n in range(MAX_CARRIED_JOBS + 1))
    state.turn_ended(committed(started(state), jobs=jobs))
    for job in jobs:
        state.job_started(job, NOW)
    state.renew()
    assert isinstance(state.next(NOW), decide.Wait)
    state.job_ended("j0")
    assert state.next(NOW) == decide.ContinueAsNew()
