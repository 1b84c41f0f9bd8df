"""One execution of the pipeline: plan, run stage by stage, commit once. Spec: plugin-model §3."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from kernel.errors import Code
    from kernel.schedule import Graph, Node, Progress, build
    from kernel.wire import budgets, names
    from kernel.wire.agent import AgentInput
    from kernel.wire.base import outline
    from kernel.wire.failure import Failure
    from kernel.wire.hooks import HookSubscription
    from kernel.wire.ids import agent_workflow, session_workflow
    from kernel.wire.signals import Deliver, Report
    from kernel.wire.turn import (
        CommitTurn,
        GraphView,
        OpenedTurn,
        RunFunction,
        RunResult,
        TurnInput,
        TurnResult,
    )

from workflows import attributes, effects, pictures
from workflows.seats import seat


@workflow.defn(name=names.TURN, failure_exception_types=[Exception])
class TurnWorkflow:
    """A turn. Everything its runs want to change is staged in the store and commits at the end."""

    @workflow.init
    def __init__(self, input: TurnInput | None = None) -> None:
        self._input = input or TurnInput(session_id="", turn_id="", incarnation="")
        self._progress = Progress(Graph(nodes={}, stages=()))
        self._hooks: tuple[HookSubscription, ...] = ()
        self._logical_turn = 0
        self._stop: str | None = None
        self._settled = 0
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._result: TurnResult | None = None

    @workflow.run
    async def run(self, input: TurnInput | None = None) -> TurnResult:
        """Run the turn to its receipt, whatever happens on the way."""
        try:
            result = await self._open() or await self._play()
        except asyncio.CancelledError:
            result = await self._cancelled()
        except FailureError as error:  # a local activity's own failure comes unwrapped
            if not effects.is_cancelled(error):
                raise self._failed(effects.failure_of(error)) from error
            result = await self._cancelled()
        self._result = result
        attributes.status(result.status)
        self._show()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    @workflow.signal(name=names.DELIVER)
    def deliver(self, message: Deliver) -> None:
        """Record a stop; the main line hears it (DESIGN §4, rule 7)."""
        if message.stop is not None:
            self._stop = message.stop

    @workflow.signal(name=names.REPORT)
    async def report(self, message: Report) -> None:
        """Pass on what an agent tells."""
        session = workflow.get_external_workflow_handle(session_workflow(self._input.session_id))
        try:
            await session.signal(names.REPORT, message)
        except FailureError as error:
            workflow.logger.info("session %s is over: %s", self._input.session_id, error)

    @workflow.query(name=names.GRAPH)
    def graph(self) -> GraphView:
        """Every node with its state, and the edges between them."""
        return budgets.graph_view(self._view())

    def _view(self) -> GraphView:
        graph = self._progress.graph
        return GraphView(
            turn_id=self._input.turn_id,
            session_id=self._input.session_id,
            status=self._result.status if self._result else "running",
            logical_turn=self._logical_turn,
            nodes=self._progress.nodes,
            edges=self._progress.edges,
            diagnostics=tuple(outline(diagnostic.message) for diagnostic in graph.diagnostics),
        )

    async def _open(self) -> TurnResult | None:
        """Freeze the generation and plan it; a turn that ended before answers with its receipt."""
        opened = await effects.remember(names.OPEN_TURN, self._input, OpenedTurn, "open turn")
        if opened.refused:
            raise self._failed(opened.refused)
        if opened.plan is not None:
            self._logical_turn = opened.plan.logical_turn
            self._progress = Progress(build(opened.plan))
            self._hooks = opened.plan.hooks
        return opened.receipt

    def _failed(self, failure: Failure) -> ApplicationError:
        """The failure of this workflow; the search attribute shows it too."""
        attributes.status("failed")
        return effects.refused(failure)

    async def _play(self) -> TurnResult:
        await seat(self._hooks, "TurnStart")
        await seat(self._hooks, "PreSchedule")
        for stage in self._progress.stages():
            while not self._progress.stage_done() and self._stop is None:
                for runtime_id in self._progress.ready(at=effects.now()):
                    self._tasks[runtime_id] = asyncio.create_task(self._run_node(runtime_id))
                self._show()
                await self._next_change()
            if self._stop is not None:
                await self._abandon(f"{stage.stage or 'manual'}: {self._stop}")
                break
        await seat(self._hooks, "TurnStop")
        await seat(self._hooks, "PreStateCommit")
        result = await self._commit()
        await seat(self._hooks, "PostStateCommit")
        return result

    async def _next_change(self) -> None:
        seen = self._settled
        if not self._progress.stage_done():
            await workflow.wait_condition(
                lambda: self._settled != seen or self._stop is not None or effects.cancellation_requested()
            )
            effects.heed_cancellation()

    async def _run_node(self, runtime_id: str) -> None:
        """Run one node; every ending is an end state, so that one node never fails the turn."""
        node = self._progress.graph.nodes[runtime_id]
        try:
            await seat(self._hooks, "PreRuntime")
            result = await (self._run_agent(node) if node.plan.agent else self._run_function(node))
            await seat(self._hooks, "PostRuntime")
        except Exception as error:  # what escapes here would end the node's task unseen, and stall the turn
            failure = effects.failure_of(error)
            stopped = effects.is_cancelled(error)
            result = RunResult(
                status="failed",
                reason=Code.TURN_STOPPED if stopped else failure.code,
                message=failure.message,
            )
        except asyncio.CancelledError:
            result = RunResult(status="failed", reason=Code.TURN_STOPPED, message="the turn was stopped")
        self._progress.settle(
            runtime_id, result.status, result.reason, result.message, usage=result.usage, at=effects.now()
        )
        self._settled += 1

    async def _run_function(self, node: Node) -> RunResult:
        upstream = self._progress.upstream(node.runtime_id)
        call = RunFunction(
            session_id=self._input.session_id,
            turn_id=self._input.turn_id,
            runtime_id=node.runtime_id,
            timeout_ms=node.plan.timeout_ms,
            **({"upstream": upstream} if upstream else {}),
        )
        timeout = timedelta(milliseconds=node.plan.timeout_ms)
        return await effects.run_function(call, RunResult, self._summary(node), timeout=timeout)

    async def _run_agent(self, node: Node) -> RunResult:
        assert node.plan.agent is not None
        upstream = self._progress.upstream(node.runtime_id)
        agent_input = AgentInput(
            session_id=self._input.session_id,
            turn_id=self._input.turn_id,
            runtime_id=node.runtime_id,
            spec=node.plan.agent,
            **({"upstream": upstream} if upstream else {}),
            **({"hooks": self._hooks} if self._hooks else {}),
        )
        result: RunResult = await workflow.execute_child_workflow(
            names.AGENT,
            agent_input,
            id=agent_workflow(self._input.turn_id, node.runtime_id),
            result_type=RunResult,
            task_timeout=effects.TASK_TIMEOUT,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            search_attributes=attributes.of(self._input.session_id, self._input.turn_id),
            static_summary=self._summary(node),
            static_details=f"Slot `{node.plan.agent.slot}`, {len(node.plan.agent.tools)} tools.",
        )
        return result

    async def _commit(self, stopped: str | None = None) -> TurnResult:
        stop = stopped or self._stop
        outcomes, deferred = self._progress.outcomes(), self._progress.deferred
        commit = CommitTurn(
            session_id=self._input.session_id,
            turn_id=self._input.turn_id,
            incarnation=self._input.incarnation,
            runs=outcomes,
            **({"origin": self._input.origin} if self._input.origin != "player" else {}),
            **({"deferred": deferred} if deferred else {}),
            **({"stopped": stop} if stop is not None else {}),
        )
        return await effects.commit(names.COMMIT_TURN, commit, TurnResult, "commit")

    async def _cancelled(self) -> TurnResult:
        """Somebody cancelled the workflow itself: that is a stop too, and it is recorded."""
        self._stop = self._stop or "the turn's workflow was cancelled"
        await self._abandon(self._stop)
        if not self._logical_turn and (receipt := await self._open()):  # only what is open can be closed
            return receipt
        return await self._commit()

    async def _abandon(self, message: str) -> None:
        """Cancel what runs and wait until all of it has settled."""
        for runtime_id in sorted(self._tasks):
            self._tasks[runtime_id].cancel()
        await workflow.wait_condition(lambda: all(task.done() for task in self._tasks.values()))
        self._progress.close(message=message)

    def _summary(self, node: Node) -> str:
        return f"{node.plan.stage or 'manual'} · {node.runtime_id}"

    def _show(self) -> None:
        workflow.set_current_details(pictures.turn(self._view()))
