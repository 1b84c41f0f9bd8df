"""One agent run: ask the loop for the next step, carry it out, feed the result back."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from kernel.agent.loop import AgentLoop, Ask, Done, PlannedCall, RunTools
    from kernel.errors import Code
    from kernel.wire import names
    from kernel.wire.agent import AgentInput, AgentSpec, CallModel, ModelStep, RunTool, ToolOutcome
    from kernel.wire.approvals import Answer, Approval
    from kernel.wire.ids import approval_id_for, turn_workflow
    from kernel.wire.signals import Deliver, Report
    from kernel.wire.turn import RunResult

from workflows import attributes, effects
from workflows.seats import seat


@workflow.defn(name=names.AGENT, failure_exception_types=[Exception])
class AgentWorkflow:
    """An agent runtime of a turn. Its transcript lives in the store; history holds steps and outlines."""

    @workflow.init
    def __init__(self, input: AgentInput | None = None) -> None:
        self._input = input or AgentInput(session_id="", turn_id="", runtime_id="", spec=AgentSpec(slot=""))
        self._answers: dict[str, Answer] = {}
        self._waiting: list[str] = []
        self._waited_s = 0.0
        self._waiting_since = 0.0

    @workflow.run
    async def run(self, input: AgentInput | None = None) -> RunResult:
        """Loop until the run is done; every ending is a value."""
        loop = AgentLoop(self._input.spec)
        started = effects.now()
        step = loop.start()
        while not isinstance(step, Done):
            effects.heed_cancellation()
            if isinstance(step, Ask):
                step = loop.on_reply(await self._ask(step, self._remaining_ms(started)))
            else:
                step = loop.on_results(await self._run_tools(step))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return RunResult(status=step.status, reason=step.reason, message=step.message, usage=step.usage)

    @workflow.signal(name=names.DELIVER)
    def deliver(self, message: Deliver) -> None:
        """Record an answer that Session judged; the first one stands."""
        if message.answer:
            self._answers.setdefault(message.answer.ref, message.answer)

    async def _ask(self, step: Ask, remaining_ms: int) -> ModelStep:
        run = self._input
        call = CallModel(
            **self._place,
            step=step.step,
            **({"tool_choice": step.tool_choice} if step.tool_choice != "auto" else {}),
            **({"nudge": step.nudge} if step.nudge else {}),
            **({"upstream": run.upstream} if step.step == 1 and run.upstream else {}),
            remaining_ms=remaining_ms,
        )
        await seat(run.hooks, "PreLLMCall")
        try:
            reply = await effects.ask_model(call, ModelStep, f"{run.runtime_id} · model call {step.step}")
        except ActivityError as error:
            if effects.is_cancelled(error):
                raise
            return ModelStep(finish="error", failed=effects.failure_of(error))
        await seat(run.hooks, "PostLLMResponse")
        return reply

    async def _run_tools(self, step: RunTools) -> list[ToolOutcome]:
        """Built-in data tools in call order, all others at once; results in call order (DECISIONS 12)."""
        others = {
            planned.index: asyncio.create_task(self._run_tool(step.step, planned))
            for planned in step.calls
            if not planned.builtin
        }
        outcomes: list[ToolOutcome] = []
        try:
            for planned in step.calls:
                task = others.get(planned.index)
                outcomes.append(await (task or self._run_tool(step.step, planned)))
        except asyncio.CancelledError:
            if self._waiting and workflow.cancellation_reason() is not None:
                attributes.waiting_for(())  # nobody waits in a closed run
            raise
        finally:
            for task in others.values():
                task.cancel()  # one call that could not be run, or a stop, ends its siblings too
        return outcomes

    async def _run_tool(self, step: int, planned: PlannedCall) -> ToolOutcome:
        await seat(self._input.hooks, "PreToolUse")  # before anybody is asked: a hook may change the call
        outcome = await self._use_tool(step, planned)
        await seat(self._input.hooks, "PostToolUse")
        return outcome

    async def _use_tool(self, step: int, planned: PlannedCall) -> ToolOutcome:
        call = RunTool(
            **self._place,
            step=step,
            index=planned.index,
            name=planned.call.name,
            **({"finishing": True} if planned.finishing else {}),
        )
        if planned.gated:
            call = self._judged(call, await self._approval(planned))
        summary = f"{self._input.runtime_id} · {planned.call.name}"
        if planned.builtin or call.refused:
            return await effects.remember(names.RUN_TOOL, call, ToolOutcome, summary)
        return await effects.use_tool(call, ToolOutcome, summary)

    async def _approval(self, planned: PlannedCall) -> Answer:
        """Ask a person, and wait without holding anything; Session keeps the deadline."""
        run, opened = self._input, effects.now()
        ref = approval_id_for(run.turn_id, run.runtime_id, planned.call.id, planned.call.digest)
        approval = Approval(
            ref=ref,
            turn_id=run.turn_id,
            runtime_id=run.runtime_id,
            call_id=planned.call.id,
            tool=planned.call.name,
            workflow_id=workflow.info().workflow_id,
            arguments=planned.call.outline,
            opened_at=opened,
            deadline=opened + run.spec.approval_deadline_ms / 1000,
        )
        self._wait_for(ref)
        await self._tell(Report(approval_opened=approval))
        await workflow.wait_condition(lambda: ref in self._answers or effects.cancellation_requested())
        effects.heed_cancellation()
        self._wait_for(None, done=ref)
        return self._answers[ref]

    def _judged(self, call: RunTool, answer: Answer) -> RunTool:
        refusals = {
            "denied": Code.TOOL_DENIED,
            "expired": Code.TOOL_EXPIRED,
            "withdrawn": Code.TOOL_CANCELLED,
            "refused": Code.SESSION_QUEUE_FULL,
        }
        refused = refusals.get(answer.status)
        return call.model_copy(update={"refused": refused, "note": answer.note}) if refused else call

    def _wait_for(self, ref: str | None, done: str | None = None) -> None:
        if not self._waiting:
            self._waiting_since = effects.now()
        self._waiting = [known for known in self._waiting if known != done] + ([ref] if ref else [])
        if not self._waiting:
            self._waited_s += effects.now() - self._waiting_since
        attributes.waiting_for(self._waiting)
        lines = [f"waits for approval `{known}`" for known in self._waiting]
        workflow.set_current_details("\n".join(lines) or "running")

    async def _tell(self, report: Report) -> None:
        parent = workflow.info().parent
        owner = parent.workflow_id if parent else turn_workflow(self._input.session_id, self._input.turn_id)
        await workflow.get_external_workflow_handle(owner).signal(names.REPORT, report)

    def _remaining_ms(self, started: float) -> int:
        """What is left of the run's time; waiting for a person does not count (DECISIONS 9)."""
        elapsed_s = effects.now() - started - self._waited_s
        return max(0, self._input.spec.timeout_ms - int(elapsed_s * 1000))

    @property
    def _place(self) -> dict[str, str]:
        run = self._input
        return {"session_id": run.session_id, "turn_id": run.turn_id, "runtime_id": run.runtime_id}
