"""The state of a session: what was recorded, what is under way, and what comes next.

Handlers only record; `next` decides; the workflow carries out one order and reports back with the
method of the same name in the past tense. All of it survives continue-as-new in a snapshot.
"""

from __future__ import annotations

from kernel.errors import Code, TurnwrightError
from kernel.session import orders
from kernel.wire import budgets
from kernel.wire.approvals import Answer, Approval
from kernel.wire.base import outline
from kernel.wire.failure import Failure
from kernel.wire.ids import turn_id_for, turn_workflow
from kernel.wire.session import (
    Applied,
    Clock,
    Configure,
    Control,
    Interject,
    LastTurn,
    Notice,
    OpenedSession,
    OpenJob,
    QueuedAction,
    Receipt,
    Resolve,
    ResolveReceipt,
    Run,
    SessionSnapshot,
    SessionStatus,
    SessionView,
    Submit,
)
from kernel.wire.signals import Report
from kernel.wire.turn import JobRef, Origin, TurnResult

KEPT_ACTIONS = 64
KEPT_APPROVALS = 64
KEPT_NOTICES = 16
MAX_APPROVALS = 64
"""Most approvals of a session that are open at once."""

MAX_CARRIED_JOBS = 48
"""Most jobs that fit into a snapshot beside all else; with more, the session goes on in the same run."""

JOB_GRACE_S = 60.0
"""How long past its limits, and then past each question, a job may stay silent before Session asks for it."""


class SessionState:
    """Everything a session remembers between two orders."""

    def __init__(self, session_id: str, snapshot: SessionSnapshot) -> None:
        self.session_id = session_id
        self.incarnation = snapshot.incarnation
        self.status: SessionStatus = snapshot.status
        self.clock = snapshot.clock
        self.queue = list(snapshot.queue)
        self.unstored: dict[str, Submit | Run] = {}
        self.interjections: list[Interject] = []
        self.configures: list[Configure] = []
        self.revision = snapshot.revision
        self.jobs = {open_job.job.job_id: open_job for open_job in snapshot.jobs}
        self.approvals = {approval.ref: approval for approval in snapshot.approvals}
        self.recent = list(snapshot.recent)
        self.notices = list(snapshot.notices)
        self.last_turn = snapshot.last_turn
        self.ending = snapshot.ending
        self.running: QueuedAction | None = None
        self._mirrored: SessionStatus = snapshot.status
        self._failed = False
        self._stop: orders.StopTurn | None = None
        self._outbox: list[orders.NoteApproval | orders.NoteWithdrawal | orders.Forward] = []
        # A continued session no longer watches the jobs that it started before: it asks when they are late.
        self._unwatched = set(self.jobs)
        self._lost: set[str] = set()
        self._asked: dict[str, float] = {}
        self._renew = False

    # Recording: what handlers call

    def submit(self, submit: Submit) -> Receipt:
        """Queue an action once; a repeat gets the same receipt."""
        return self._enqueue(submit, "player")

    def run(self, run: Run) -> Receipt:
        """Queue a manual activation once."""
        return self._enqueue(run, "manual")

    def interject(self, interject: Interject) -> str | None:
        """Record steering text; returns the running turn's id."""
        if interject.interjection_id not in {known.interjection_id for known in self.interjections}:
            self.interjections.append(interject)
        return self.running.turn_id if self.running else None

    def configure(self, configure: Configure) -> int:
        """Record a change; returns its revision."""
        self.configures.append(configure)
        return self.revision + len(self.configures)

    def control(self, control: Control) -> None:
        """Record a change of status, or a stop."""
        match control.action:
            case "pause":
                self.status = "paused"
            case "resume":
                self.status = "active"
            case "end":
                self.ending = True
                self.queue.clear()
                self.unstored.clear()
                self._request_stop("the session was ended")
            case "cancel-turn":
                self._cancel(control.turn_id)

    def resolve(self, resolve: Resolve) -> ResolveReceipt:
        """Close an approval with a person's answer; the first answer wins (DECISIONS 15)."""
        approval = self.approvals.get(resolve.ref)
        if approval is None:
            raise TurnwrightError(
                Code.APPROVAL_UNKNOWN,
                f"no approval {resolve.ref} is known here",
                accepted="a ref that `state` lists",
            )
        if approval.status != "open":
            return ResolveReceipt(ref=resolve.ref, outcome="superseded")
        status = "approved" if resolve.decision == "approve" else "denied"
        self._close(approval, Answer(ref=approval.ref, status=status, note=resolve.note, actor=resolve.actor))
        return ResolveReceipt(ref=resolve.ref, outcome="applied")

    def report(self, report: Report) -> None:
        """Record what a turn or a job tells."""
        if report.approval_opened and report.approval_opened.ref not in self.approvals:
            self._ask(report.approval_opened)
        if report.job_ended:
            self.job_ended(report.job_ended)

    # Deciding: what the main loop asks

    def tick(self, now: float) -> None:
        """Let time pass: close what nobody answered, and end what has nothing left to do."""
        for approval in [a for a in self.approvals.values() if a.status == "open" and a.deadline <= now]:
            self._close(approval, Answer(ref=approval.ref, status="expired", note="nobody answered in time"))
        if self.ending and not self.running:
            self.status = "ended"

    def next(self, now: float) -> orders.Order:
        """The next thing to do; the loop carries it out and asks again."""
        for find in (self._next_record, self._next_stop, self._next_job, self._next_turn, self._next_life):
            if order := find(now):
                return order
        return orders.Wait(self._next_deadline(now))

    def _next_record(self, now: float) -> orders.Order | None:
        if self._outbox:
            return self._outbox[0]
        if self._mirrored != self.status:
            return orders.Mirror(self.status)
        for queued in self.queue:
            message = self.unstored.get(queued.action_id)
            if isinstance(message, Submit):
                return orders.StoreAction(queued, submit=message)
            if isinstance(message, Run):
                return orders.StoreAction(queued, run=message)
        if self.interjections:
            return orders.NoteInterjection(
                self.interjections[0], self.running.turn_id if self.running else None
            )
        return None

    def _next_stop(self, now: float) -> orders.Order | None:
        return self._stop

    def _next_job(self, now: float) -> orders.Order | None:
        if self.ending:
            return None
        for job_id in sorted(self.jobs):
            if self.jobs[job_id].started_at is None:
                return orders.StartJob(self.jobs[job_id].job)
        silent = tuple(sorted(job_id for job_id in self.jobs if self._silent(job_id, now)))
        return orders.Reconcile(silent) if silent else None

    def _next_turn(self, now: float) -> orders.Order | None:
        if self.running or self.ending:
            return None
        if self.configures:
            return orders.Apply(self.revision + 1, self.configures[0])
        if self._renew and not self._outbox and len(self.jobs) <= MAX_CARRIED_JOBS:
            return orders.ContinueAsNew()
        if self.queue and self.status == "active" and self._settled(now):
            return orders.StartTurn(self.queue[0])
        return None

    def _next_life(self, now: float) -> orders.Order | None:
        return orders.End() if self.status == "ended" else None

    # Reporting back: what the main loop calls after an order

    def opened(self, opened: OpenedSession) -> None:
        """The session's record is loaded."""
        self.clock = opened.clock
        self._tell(*opened.notices)

    def stored(self, order: orders.StoreAction, done: bool) -> None:
        """An action stands in the store; one that ended long ago has nothing left to run."""
        self.unstored.pop(order.queued.action_id, None)
        if done:
            self.queue = [queued for queued in self.queue if queued != order.queued]

    def noted(self, order: orders.Order) -> None:
        """An inbox entry, a withdrawal, an answer or an interjection went out."""
        if self._outbox and self._outbox[0] is order:
            self._outbox.pop(0)
        if isinstance(order, orders.NoteInterjection):
            self.interjections.pop(0)

    def failed(self, failure: Failure) -> None:
        """The session did not open: nothing comes after this."""
        self._failed = True
        self._notice(failure.code, failure.message)

    def mirrored(self, status: SessionStatus) -> None:
        """The store knows this status."""
        self._mirrored = status

    def applied(self, order: orders.Apply, applied: Applied) -> None:
        """A configuration is in force, or refused with a notice."""
        self.configures.pop(0)
        self.revision = order.revision
        if refused := applied.refused:
            self._tell(Notice(code=refused.code, message=refused.message, refused=order.revision))
        self._tell(*applied.notices)

    def turn_started(self, queued: QueuedAction) -> None:
        """The turn runs; only its end frees the session for the next."""
        late = sorted(job_id for job_id, open_job in self.jobs.items() if open_job.job.settle)
        if late:
            self._notice(
                Code.SESSION_SETTLE_TIMEOUT,
                f"turn {queued.turn_id} did not wait longer for {', '.join(late)}",
            )
        self.queue.remove(queued)
        self.running = queued

    def turn_ended(self, result: TurnResult | None, failure: Failure | None = None) -> None:
        """The running turn is over: take over its clock and its jobs."""
        running, self.running, self._stop = self.running, None, None
        if running is None:
            return
        for approval in [a for a in self.approvals.values() if a.turn_id == running.turn_id]:
            self._withdraw(approval)
        if result is None:
            said = outline(f"{failure.code}: {failure.message}") if failure else ""
            self.last_turn = LastTurn(turn_id=running.turn_id, status="failed", message=said)
            if failure:
                self._notice(failure.code, failure.message)
            return
        self.last_turn = LastTurn(turn_id=result.turn_id, status=result.status, message=result.message)
        if result.status == "committed":
            self.clock = Clock(phase=self.clock.phase, completed_player_turns=result.completed_player_turns)
        for job in result.jobs:
            self.jobs.setdefault(job.job_id, OpenJob(job=job))

    def stop_sent(self) -> None:
        """The stop is on its way to the turn."""
        self._stop = None

    def job_started(self, job: JobRef, now: float) -> None:
        """A job runs from now on."""
        self.jobs[job.job_id] = OpenJob(job=job, started_at=now)

    def job_ended(self, job_id: str) -> None:
        """A job reported, or was found dead."""
        self.jobs.pop(job_id, None)
        self._asked.pop(job_id, None)
        self._unwatched.discard(job_id)
        self._lost.discard(job_id)

    def job_lost(self, job_id: str) -> None:
        """A job runs unwatched, or its workflow failed: how it stands must be asked."""
        if job_id in self.jobs:
            self._unwatched.add(job_id)
            self._lost.add(job_id)

    def reconciled(self, order: orders.Reconcile, ended: dict[str, str], now: float) -> None:
        """Some silent jobs are over; the others are asked again only after another grace period."""
        for job_id in order.job_ids:
            self._lost.discard(job_id)
            if job_id in ended:
                self.job_ended(job_id)
                self._notice(Code.WORKFLOW_FAILED, f"job {job_id} ended without a report: {ended[job_id]}")
            else:
                self._asked[job_id] = now

    def refused(self, failure: Failure) -> None:
        """The store refused what was recorded; people see why."""
        self._notice(failure.code, failure.message)

    def renew(self) -> None:
        """History is long: continue as new as soon as no turn runs."""
        self._renew = True

    # Reading

    def knows(self, action_id: str) -> bool:
        """Whether an action is running, queued or recently done."""
        return any(known.action_id == action_id for known in self._known())

    def names_turn(self, turn_id: str | None) -> bool:
        """Whether a stop can mean this turn."""
        if turn_id is None:
            return self.running is not None
        active = [self.running] if self.running else []
        return turn_id in {queued.turn_id for queued in (*active, *self.queue)}

    def waiting_for(self) -> tuple[str, ...]:
        """Refs of open approvals, oldest first."""
        open_ = [approval for approval in self.approvals.values() if approval.status == "open"]
        return tuple(a.ref for a in sorted(open_, key=lambda a: (a.opened_at, a.ref)))

    def view(self) -> SessionView:
        """The answer of the `state` query."""
        view = SessionView(
            session_id=self.session_id,
            status="failed" if self._failed else self.status,
            phase=self.clock.phase,
            completed_player_turns=self.clock.completed_player_turns,
            queue=tuple(self.queue),
            running=self.running,
            approvals=tuple(self.approvals.values()),
            jobs=tuple(self.jobs.values()),
            last_turn=self.last_turn,
            revision=self.revision,
            notices=tuple(self.notices),
        )
        return budgets.session_view(view)

    def snapshot(self) -> SessionSnapshot:
        """What the next run of the workflow needs; `next` first empties everything that is large."""
        whole = SessionSnapshot(
            incarnation=self.incarnation,
            status=self.status,
            clock=self.clock,
            queue=tuple(self.queue),
            revision=self.revision,
            jobs=tuple(self.jobs.values()),
            approvals=tuple(self.approvals.values()),
            recent=tuple(self.recent),
            notices=tuple(self.notices),
            last_turn=self.last_turn,
            ending=self.ending,
        )
        return budgets.snapshot(whole)

    # Inner workings

    def _known(self) -> list[QueuedAction]:
        return [*([self.running] if self.running else []), *self.queue, *self.recent]

    def _enqueue(self, message: Submit | Run, origin: Origin) -> Receipt:
        turn_id = turn_id_for(self.session_id, message.action_id)
        if not self.knows(message.action_id):
            queued = QueuedAction(action_id=message.action_id, turn_id=turn_id, origin=origin)
            self.queue.append(queued)
            self.unstored[message.action_id] = message
            self.recent = [*self.recent, queued][-KEPT_ACTIONS:]
        waiting = [queued.action_id for queued in self.queue]
        ahead = 1 if self.running else 0
        position = waiting.index(message.action_id) + ahead if message.action_id in waiting else 0
        return Receipt(
            turn_id=turn_id, workflow_id=turn_workflow(self.session_id, turn_id), position=position
        )

    def _cancel(self, turn_id: str | None) -> None:
        if turn_id is None or (self.running and self.running.turn_id == turn_id):
            self._request_stop("stopped by a person")
            return
        for queued in [q for q in self.queue if q.turn_id == turn_id]:
            self.queue.remove(queued)
            self.unstored.pop(queued.action_id, None)
            self._outbox.append(orders.NoteWithdrawal(queued))
            self._notice(Code.TURN_STOPPED, f"turn {turn_id} left the queue before it ran")

    def _request_stop(self, reason: str) -> None:
        if self.running:
            self._stop = orders.StopTurn(self.running.turn_id, reason)

    def _ask(self, approval: Approval) -> None:
        """Open an approval; past the cap its call is answered at once (spec: plugin-model §25)."""
        if len(self.waiting_for()) >= MAX_APPROVALS:
            note = f"{MAX_APPROVALS} questions of this session are open"
            answer = Answer(ref=approval.ref, status="refused", note=note)
            self._outbox.append(orders.Forward(approval.workflow_id, answer))
            return
        # Set, so that it is written: whoever reads `state` elsewhere does not know our defaults.
        opened = approval.model_copy(update={"status": "open"})
        self.approvals[opened.ref] = opened
        self._outbox.append(orders.NoteApproval(opened))

    def _close(self, approval: Approval, answer: Answer) -> None:
        closed = approval.model_copy(update={"status": answer.status})
        self.approvals[approval.ref] = closed
        self._outbox.append(orders.Forward(approval.workflow_id, answer))
        self._outbox.append(orders.NoteApproval(closed, answer.note, answer.actor))
        self._forget_old_approvals()

    def _withdraw(self, approval: Approval) -> None:
        if approval.status == "open":
            closed = approval.model_copy(update={"status": "withdrawn"})
            self.approvals[approval.ref] = closed
            self._outbox.append(orders.NoteApproval(closed))
            self._forget_old_approvals()

    def _forget_old_approvals(self) -> None:
        closed = [ref for ref, approval in self.approvals.items() if approval.status != "open"]
        for ref in closed[: max(0, len(closed) - KEPT_APPROVALS)]:
            del self.approvals[ref]

    def _settled(self, now: float) -> bool:
        return all(self._settle_deadline(open_job) <= now for open_job in self.jobs.values())

    def _settle_deadline(self, open_job: OpenJob) -> float:
        if not open_job.job.settle or open_job.started_at is None:
            return 0.0
        return open_job.started_at + open_job.job.max_settle_wait_ms / 1000

    def _silent(self, job_id: str, now: float) -> bool:
        return job_id in self._lost or self._report_deadline(job_id) <= now

    def _report_deadline(self, job_id: str) -> float:
        if job_id in self._asked:
            return self._asked[job_id] + JOB_GRACE_S
        open_job = self.jobs[job_id]
        limit = (open_job.job.max_queue_ms + open_job.job.max_execution_ms) / 1000 + JOB_GRACE_S
        return (open_job.started_at or 0.0) + limit

    def _next_deadline(self, now: float) -> float | None:
        deadlines = [a.deadline for a in self.approvals.values() if a.status == "open"]
        if self.queue and not self.running and self.status == "active":
            deadlines += [self._settle_deadline(open_job) for open_job in self.jobs.values()]
        deadlines += [self._report_deadline(job_id) for job_id in sorted(self._unwatched)]
        ahead = [deadline for deadline in deadlines if deadline > now]
        return min(ahead) if ahead else None

    def _notice(self, code: Code, message: str) -> None:
        self._tell(Notice(code=code, message=outline(message)))

    def _tell(self, *notices: Notice) -> None:
        self.notices = [*self.notices, *notices][-KEPT_NOTICES:]
