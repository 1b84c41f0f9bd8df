"""The single writer of a session: handlers record, the main loop carries out one order at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from kernel import session as decide
    from kernel.errors import Code, TurnwrightError
    from kernel.session import SessionState
    from kernel.wire import names
    from kernel.wire import session as wire
    from kernel.wire.base import outline
    from kernel.wire.failure import Failure
    from kernel.wire.ids import job_workflow, session_workflow, turn_workflow
    from kernel.wire.signals import Deliver, Report
    from kernel.wire.turn import JobInput, JobRef, JobResult, TurnInput, TurnResult

from workflows import attributes, effects, pictures


@workflow.defn(name=names.SESSION, failure_exception_types=[TurnwrightError])
class SessionWorkflow:
    """One session, as long as it lives; continues as new between turns."""

    @workflow.init
    def __init__(self, input: wire.SessionInput | None = None) -> None:
        self._input = input or wire.SessionInput.model_construct(session_id="")
        fresh = wire.SessionSnapshot(incarnation=_incarnation(workflow.info().first_execution_run_id))
        self._state = SessionState(self._input.session_id, self._input.snapshot or fresh)
        self._turns_queue = self._input.snapshot.turns_queue if self._input.snapshot else None
        self._turn: workflow.ChildWorkflowHandle[Any, TurnResult] | None = None
        self._watchers: set[asyncio.Task[None]] = set()
        self._waiting_for: tuple[str, ...] = ()

    @workflow.run
    async def run(self, input: wire.SessionInput | None = None) -> wire.SessionResult:
        """Open the session, then do what its state says until it ends."""
        await self._open()
        while True:
            self._show()
            self._state.tick(effects.now())
            order = self._state.next(effects.now())
            if isinstance(order, decide.End):
                break
            with suppress(asyncio.CancelledError):
                await self._carry_out(order)
            self._hear_cancellation()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return wire.SessionResult(
            session_id=self._input.session_id,
            completed_player_turns=self._state.clock.completed_player_turns,
        )

    # Messages: record, never wait

    @workflow.update(name=names.SUBMIT)
    def submit(self, message: wire.Submit) -> wire.Receipt:
        """Queue a player's action."""
        return self._state.submit(message)

    @submit.validator
    def _check_submit(self, message: wire.Submit) -> None:
        decide.check_submit(self._state, message)

    @workflow.update(name=names.RUN)
    def activate(self, message: wire.Run) -> wire.Receipt:
        """Queue the activation of a manual runtime."""
        return self._state.run(message)

    @activate.validator
    def _check_run(self, message: wire.Run) -> None:
        decide.check_run(self._state, message)

    @workflow.update(name=names.RESOLVE)
    def resolve(self, message: wire.Resolve) -> wire.ResolveReceipt:
        """Answer an approval; the first answer wins."""
        return self._state.resolve(message)

    @resolve.validator
    def _check_resolve(self, message: wire.Resolve) -> None:
        if message.ref not in self._state.approvals:
            self._state.resolve(message)

    @workflow.signal(name=names.RESOLVE)
    def resolve_signal(self, message: wire.Resolve) -> None:
        """The same answer, fire-and-forget."""
        try:
            self._state.resolve(message)
        except TurnwrightError as error:
            workflow.logger.warning("answer dropped: %s", error)

    @workflow.update(name=names.INTERJECT)
    def interject(self, message: wire.Interject) -> wire.InterjectReceipt:
        """Record steering text."""
        turn_id = self._state.interject(message)
        return wire.InterjectReceipt(interjection_id=message.interjection_id, turn_id=turn_id)

    @interject.validator
    def _check_interject(self, message: wire.Interject) -> None:
        decide.check_interject(self._state, message)

    @workflow.signal(name=names.INTERJECT)
    def interject_signal(self, message: wire.Interject) -> None:
        """The same text, fire-and-forget."""
        try:
            decide.check_interject(self._state, message)
        except TurnwrightError as error:
            workflow.logger.warning("interjection dropped: %s", error)
        else:
            self._state.interject(message)

    @workflow.update(name=names.CONFIGURE)
    def configure(self, message: wire.Configure) -> wire.ConfigureReceipt:
        """Record a change that is in force from the next turn."""
        return wire.ConfigureReceipt(revision=self._state.configure(message))

    @configure.validator
    def _check_configure(self, message: wire.Configure) -> None:
        decide.check_configure(self._state, message)

    @workflow.update(name=names.CONTROL)
    def control(self, message: wire.Control) -> wire.ControlReceipt:
        """Pause, resume, end, or stop a turn."""
        self._state.control(message)
        return wire.ControlReceipt(status=self._state.status, ending=self._state.ending)

    @control.validator
    def _check_control(self, message: wire.Control) -> None:
        decide.check_control(self._state, message)

    @workflow.signal(name=names.REPORT)
    def report(self, message: Report) -> None:
        """Record what a turn or a job tells."""
        self._state.report(message)
        self._show()

    @workflow.query(name=names.STATE)
    def state(self) -> wire.SessionView:
        """Clock, queue, running turn, approvals, jobs, notices."""
        return self._state.view()

    # Orders

    def _hear_cancellation(self) -> None:
        """A cancellation of the workflow asks the session to end, wherever it met the main loop."""
        if workflow.cancellation_reason() is not None and not self._state.ending:
            workflow.logger.info("cancellation of session %s asks it to end", self._input.session_id)
            self._state.control(wire.Control(action="end"))

    async def _open(self) -> None:
        if self._input.snapshot:
            return
        if workflow.info().workflow_id != session_workflow(self._input.session_id):
            refusal = TurnwrightError(
                Code.SESSION_ID,
                f"session {self._input.session_id!r} cannot run as {workflow.info().workflow_id!r}",
                accepted=f"the workflow id {session_workflow(self._input.session_id)}",
            )
            raise self._failed(Failure(code=refusal.code, message=outline(refusal.account)))
        workflow.upsert_search_attributes(
            [attributes.SESSION.value_set(self._input.session_id), attributes.STATUS.value_set("active")]
        )
        request = wire.OpenSession(
            session_id=self._input.session_id,
            incarnation=self._state.incarnation,
            packages=self._input.packages,
            locale=self._input.locale,
            **_chosen(self._input),
        )
        try:
            opened = await effects.open_session(request, wire.OpenedSession)
        except ActivityError as error:
            _pass_on_cancellation(error)
            raise self._failed(effects.failure_of(error)) from error
        self._state.opened(opened)
        for turn_id in opened.orphans:  # nobody else would ever answer or stop them
            turn = turn_workflow(self._input.session_id, turn_id)
            await self._send(turn, names.DELIVER, Deliver(stop="the session started anew"))

    def _failed(self, failure: Failure) -> ApplicationError:
        """The failure of this workflow; search attribute, details and the query `state` show it too."""
        attributes.status("failed")
        self._state.failed(failure)
        self._show()
        return effects.refused(failure)

    async def _carry_out(self, order: decide.Order) -> None:
        match order:
            case decide.Wait():
                await self._wait(order)
            case decide.StoreAction():
                await self._store(order)
            case decide.StartTurn():
                await self._start_turn(order)
            case decide.StopTurn():
                await self._stop_turn(order)
            case decide.StartJob():
                await self._start_job(order.job)
            case decide.NoteApproval() | decide.NoteInterjection() | decide.NoteWithdrawal():
                await self._note(order)
            case decide.Forward():
                await self._forward(order)
            case decide.Apply():
                await self._apply(order)
            case decide.Mirror():
                await self._mirror(order)
            case decide.Reconcile():
                await self._reconcile(order)
            case decide.ContinueAsNew():
                await self._continue_as_new()

    async def _wait(self, order: decide.Wait) -> None:
        if workflow.info().is_continue_as_new_suggested():
            self._state.renew()
        timeout = None if order.until is None else max(0.0, order.until - effects.now())
        try:
            await workflow.wait_condition(self._has_order, timeout=timeout, timeout_summary="next deadline")
        except TimeoutError:
            return

    def _has_order(self) -> bool:
        self._state.tick(effects.now())  # an end of an idle session is due at once, and is no order by itself
        return not isinstance(self._state.next(effects.now()), decide.Wait)

    async def _store(self, order: decide.StoreAction) -> None:
        request = wire.AcceptAction(
            session_id=self._input.session_id,
            turn_id=order.queued.turn_id,
            **({"submit": order.submit} if order.submit else {"run": order.run}),
        )
        accepted = await self._remember(names.ACCEPT_ACTION, request, wire.AcceptedAction, "accept action")
        if accepted and accepted.turns_queue:
            self._turns_queue = accepted.turns_queue
        self._state.stored(order, done=accepted is None or accepted.done)

    async def _start_turn(self, order: decide.StartTurn) -> None:
        turn_id, session_id = order.queued.turn_id, self._input.session_id
        origin = {"origin": order.queued.origin} if order.queued.origin != "player" else {}
        turn_input = TurnInput(
            session_id=session_id, turn_id=turn_id, incarnation=self._state.incarnation, **origin
        )
        self._state.turn_started(order.queued)
        try:
            self._turn = await workflow.start_child_workflow(
                names.TURN,
                turn_input,
                id=turn_workflow(session_id, turn_id),
                result_type=TurnResult,
                task_queue=self._turns_queue,
                task_timeout=effects.TASK_TIMEOUT,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                search_attributes=attributes.of(session_id, turn_id, "running"),
                static_summary=f"turn {turn_id} of {session_id}",
                static_details=f"Action `{order.queued.action_id}`, {order.queued.origin}.",
            )
        except asyncio.CancelledError:
            # Whoever cancelled the session cancelled the start too; nobody hears how such a turn ends.
            stopped = Failure(code=Code.TURN_STOPPED, message="the session was cancelled as the turn started")
            self._state.turn_ended(None, stopped)
            raise
        except (FailureError, WorkflowAlreadyStartedError) as error:
            self._state.turn_ended(None, effects.failure_of(error))
            return
        self._watch(self._watch_turn(self._turn))

    async def _watch_turn(self, turn: workflow.ChildWorkflowHandle[Any, TurnResult]) -> None:
        try:
            self._state.turn_ended(await turn)
        except FailureError as error:  # a result that cannot be read is no ChildWorkflowError
            self._state.turn_ended(None, effects.failure_of(error))
        self._show()

    async def _stop_turn(self, order: decide.StopTurn) -> None:
        self._state.stop_sent()
        if self._turn:
            await self._send(self._turn.id, names.DELIVER, Deliver(stop=order.reason))

    async def _start_job(self, job: JobRef) -> None:
        session_id = self._input.session_id
        self._state.job_started(job, effects.now())
        try:
            handle = await workflow.start_child_workflow(
                names.JOB,
                JobInput(session_id=session_id, incarnation=self._state.incarnation, job=job),
                id=job_workflow(job.job_id),
                result_type=JobResult,
                task_queue=self._turns_queue,
                task_timeout=effects.TASK_TIMEOUT,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                search_attributes=attributes.of(session_id, job.turn_id, "running"),
                static_summary=f"{job.runtime_id} after turn {job.turn_id}",
                static_details=f"Job `{job.job_id}` of `{session_id}`"
                + (", the next action waits for it." if job.settle else "."),
            )
        except (FailureError, WorkflowAlreadyStartedError) as error:
            workflow.logger.info("job %s runs or ran already: %s", job.job_id, error)
            self._state.job_lost(job.job_id)
            return
        self._watch(self._watch_job(job.job_id, handle))

    async def _watch_job(self, job_id: str, handle: workflow.ChildWorkflowHandle[Any, JobResult]) -> None:
        """Hear of a job that died without a report, as long as this run of the session lasts."""
        try:
            await handle
        except FailureError as error:
            workflow.logger.warning("job %s failed: %s", job_id, effects.failure_of(error))
            self._state.job_lost(job_id)
        else:
            self._state.job_ended(job_id)
        self._show()

    async def _note(
        self, order: decide.NoteApproval | decide.NoteInterjection | decide.NoteWithdrawal
    ) -> None:
        session_id = self._input.session_id
        if isinstance(order, decide.NoteApproval):
            entry = wire.RecordApproval(
                session_id=session_id, approval=order.approval, note=order.note, actor=order.actor
            )
            summary = f"approval {order.approval.status}: {order.approval.tool}"
            await self._unless_refused(effects.note(names.RECORD_APPROVAL, entry, wire.Applied, summary))
        elif isinstance(order, decide.NoteWithdrawal):
            withdrawal = wire.WithdrawAction(session_id=session_id, queued=order.queued)
            summary = f"withdraw {order.queued.action_id}"
            await self._unless_refused(effects.note(names.WITHDRAW_ACTION, withdrawal, wire.Applied, summary))
        else:
            text = wire.RecordInterjection(
                session_id=session_id, turn_id=order.turn_id, interject=order.interject
            )
            note = effects.note(names.RECORD_INTERJECTION, text, wire.Applied, "interjection")
            await self._unless_refused(note)
        self._state.noted(order)

    async def _forward(self, order: decide.Forward) -> None:
        await self._send(order.workflow_id, names.DELIVER, Deliver(answer=order.answer))
        self._state.noted(order)

    async def _apply(self, order: decide.Apply) -> None:
        request = wire.ApplyConfigure(
            session_id=self._input.session_id, revision=order.revision, configure=order.configure
        )
        try:
            applied = await effects.configure_session(request, wire.Applied)
        except ActivityError as error:
            _pass_on_cancellation(error)
            applied = wire.Applied(refused=effects.failure_of(error))
        self._state.applied(order, applied)

    async def _mirror(self, order: decide.Mirror) -> None:
        attributes.status(order.status)
        request = wire.SetSessionStatus(session_id=self._input.session_id, status=order.status)
        # A workflow task that fails forgets the order that came in it: the store may hear of it only later.
        told = effects.note(names.CLOSE_SESSION, request, wire.Applied, f"session {order.status}")
        await self._unless_refused(told)
        self._state.mirrored(order.status)

    async def _reconcile(self, order: decide.Reconcile) -> None:
        request = wire.ReconcileJobs(session_id=self._input.session_id, job_ids=order.job_ids)
        try:
            found = await effects.reconcile_jobs(request, wire.ReconciledJobs)
        except ActivityError as error:
            _pass_on_cancellation(error)
            workflow.logger.warning("jobs could not be asked for: %s", effects.failure_of(error))
            found = wire.ReconciledJobs()
        self._state.reconciled(order, found.ended, effects.now())

    async def _continue_as_new(self) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not isinstance(self._state.next(effects.now()), decide.ContinueAsNew):
            return  # a message came in while the handlers drained
        snapshot = self._state.snapshot().model_copy(update={"turns_queue": self._turns_queue})
        workflow.continue_as_new(wire.SessionInput(session_id=self._input.session_id, snapshot=snapshot))

    # Inner workings

    async def _remember(self, activity: str, argument: Any, result_type: type[Any], summary: str) -> Any:
        """Write to the store, for as long as it takes."""
        return await self._unless_refused(
            effects.remember(activity, argument, result_type, summary, patience=None)
        )

    async def _unless_refused(self, work: Awaitable[Any]) -> Any:
        """The work's result; a refusal becomes a notice, never a crash."""
        try:
            return await work
        except FailureError as error:  # a local activity's own failure comes unwrapped
            _pass_on_cancellation(error)
            self._state.refused(effects.failure_of(error))
            return None

    async def _send(self, workflow_id: str, signal: str, message: Any) -> None:
        try:
            await workflow.get_external_workflow_handle(workflow_id).signal(signal, message)
        except FailureError as error:
            workflow.logger.info("%s is over, %s not delivered: %s", workflow_id, signal, error)

    def _watch(self, watcher: Any) -> None:
        task = asyncio.create_task(watcher)
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)

    def _show(self) -> None:
        workflow.set_current_details(pictures.session(self._state.view()))
        waiting_for = self._state.waiting_for()
        if waiting_for != self._waiting_for:
            self._waiting_for = waiting_for
            attributes.waiting_for(waiting_for)


def _pass_on_cancellation(error: FailureError) -> None:
    if effects.is_cancelled(error):
        raise asyncio.CancelledError from error


def _chosen(asked: wire.SessionInput) -> dict[str, Any]:
    """What a session may be started with beside packages; a field left out costs no byte of history."""
    fields = {name: getattr(asked, name) for name in ("excluded", "providers", "settings")}
    return {name: value for name, value in fields.items() if value is not None}


def _incarnation(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()[:12]
