"""Stands before every handler: what does not fit its signature never reaches it.

A handler that receives a wrong argument raises, and an exception in a handler fails the workflow task,
which Temporal retries for ever while the message stays in history. So a malformed signal is dropped
with one line in the log, an update is rejected, a query fails, and a start fails at once
(DESIGN §4, rule 2). A `TurnwrightError` becomes the failure that carries its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    HandleQueryInput,
    HandleSignalInput,
    HandleUpdateInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from kernel.errors import Code, TurnwrightError
from link.signatures import Signature

Kind = Literal["signal", "query", "update"]

# The SDK writes the workflow's id into the format string of a log line; our ids are percent-escaped, and
# `agent/…/a%2Fb` there breaks the line, or fails the workflow where a handler of logging raises.
workflow.logger.workflow_info_on_message = False
activity.logger.activity_info_on_message = False


class WireInterceptor(Interceptor):
    """Give this to every worker: `Worker(…, interceptors=[WireInterceptor()])`."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Activities: refusals become failures of their code."""
        return _Activities(next)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """Workflows: the checks of this module."""
        return _Messages


class _Activities(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        with refusals_as_failures():
            return await super().execute_activity(input)


class _Messages(WorkflowInboundInterceptor):
    """One per workflow run."""

    def __init__(self, next: WorkflowInboundInterceptor) -> None:
        super().__init__(next)
        self._signatures: dict[tuple[Kind, str], Signature] = {}
        self._start_checked = False
        self._start_refused: ApplicationError | None = None

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Check what the workflow was started with, then run it."""
        name = workflow.info().workflow_type
        try:
            input.args = Signature.of_start(f"start of {name}", input.run_fn).checked(input.args)
        except ApplicationError as error:
            self._start_refused = error
            raise
        finally:
            self._start_checked = True
        with refusals_as_failures():
            return await super().execute_workflow(input)

    async def handle_signal(self, input: HandleSignalInput) -> None:
        """Drop a signal that does not fit, or that its handler refuses: nobody hears a refusal."""
        try:
            await self._after_start()
            input.args = self._checked("signal", input.signal, input.args)
            await super().handle_signal(input)
        except TurnwrightError as error:
            _log_dropped(input.signal, str(error))
        except _Refused as refused:
            _log_dropped(input.signal, refused.error.message)

    async def handle_query(self, input: HandleQueryInput) -> Any:
        """Fail a query that does not fit."""
        with _plainly(), refusals_as_failures():
            self._refuse_if_not_started()
            input.args = self._checked("query", input.query, input.args)
            return await super().handle_query(input)

    def handle_update_validator(self, input: HandleUpdateInput) -> None:
        """Reject an update that does not fit, before it is written to history."""
        with _plainly(), refusals_as_failures():
            self._refuse_if_not_started()
            input.args = self._checked("update", input.update, input.args)
            super().handle_update_validator(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        """Fail an update that does not fit where there was no validator to reject it."""
        with _plainly(), refusals_as_failures():
            await self._after_start()
            input.args = self._checked("update", input.update, input.args)
            return await super().handle_update_handler(input)

    async def _after_start(self) -> None:
        """Wait for the check of the start: a message may arrive in the same task, and would come first.

        Its handler would meet a workflow object that was made without an input.
        """
        if not self._start_checked:
            await workflow.wait_condition(lambda: self._start_checked)
        self._refuse_if_not_started()

    def _refuse_if_not_started(self) -> None:
        if self._start_refused:
            raise _Refused(self._start_refused)

    def _checked(self, kind: Kind, name: str, args: Sequence[Any]) -> Sequence[Any]:
        signature = self._signatures.get((kind, name))
        if signature is None:
            handler = _declared(kind, name)
            if handler is None:
                return args  # the SDK's own queries, and what has no handler
            signature = self._signatures[kind, name] = Signature.of_method(f"{kind} {name}", handler)
        try:
            return signature.checked(args)
        except ApplicationError as error:
            raise _Refused(error) from None


def _log_dropped(signal: str, why: str) -> None:
    workflow.logger.warning("%s: signal %s dropped: %s", workflow.info().workflow_id, signal, why)


def _declared(kind: Kind, name: str) -> Callable[..., Any] | None:
    """The method that the workflow class declares for a message.

    `workflow.get_update_handler` and its like hand out closures over `*args` for `async` handlers.
    """
    definition = workflow._Definition.must_from_class(type(workflow.instance()))
    handlers: Mapping[Kind, Mapping[Any, Any]] = {
        "signal": definition.signals,
        "query": definition.queries,
        "update": definition.updates,
    }
    found = handlers[kind].get(name)
    handler: Callable[..., Any] | None = found.fn if found else None
    return handler


class _Refused(Exception):
    """A message that this module refuses, apart from an `ApplicationError` that a handler raises."""

    def __init__(self, error: ApplicationError) -> None:
        super().__init__(error.message)
        self.error = error


@contextmanager
def _plainly() -> Iterator[None]:
    """Let the person who asked see the refusal itself."""
    try:
        yield
    except _Refused as refused:
        raise refused.error from None


@contextmanager
def refusals_as_failures() -> Iterator[None]:
    """Turn a `TurnwrightError` into the failure of its code; see `failure_of`."""
    try:
        yield
    except TurnwrightError as error:
        raise failure_of(error) from None


def failure_of(error: TurnwrightError) -> ApplicationError:
    """The failure that carries a refusal through Temporal: code, text and details.

    No retry repeats it, unless it says that the store is away: that is waited for.
    """
    details = () if error.details is None else (error.details,)
    final = error.code != Code.STORE_UNREACHABLE
    return ApplicationError(str(error), *details, type=str(error.code), non_retryable=final)
