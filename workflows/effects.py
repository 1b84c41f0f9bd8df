"""How workflow code reaches the world: one function per kind of effect, with its limits and retries.

Store reads and writes are local activities; models, plugin code and network are activities
(DESIGN §4, rule 10). The retries here are for infrastructure alone: a provider's attempts are made, and
counted, inside `call_model` (rule 4).
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    TimeoutError,
)

with workflow.unsafe.imports_passed_through():
    from kernel.errors import Code, account_in
    from kernel.wire import names
    from kernel.wire.base import outline
    from kernel.wire.failure import Failure

R = TypeVar("R")

TASK_TIMEOUT = timedelta(seconds=3)
"""Workflow task time-out of every child: how long a dead worker's task is waited for."""

HEARTBEAT_TIMEOUT = timedelta(seconds=5)
CEILING = timedelta(minutes=30)
_SETUP = timedelta(seconds=60)
_STORE_ATTEMPT = timedelta(seconds=10)
_ENDLESS_ATTEMPT = timedelta(seconds=3)
_STORE_PATIENCE = timedelta(minutes=2)
_LARGE_COMMIT = timedelta(minutes=5)
_DEFECTS = ("AttributeError", "DataError", "KeyError", "TypeError")
"""Failures of our own that come back with every attempt: a session would repeat the write for ever."""

_STORE_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    maximum_interval=timedelta(seconds=5),
    non_retryable_error_types=_DEFECTS,
)
_ENDLESS_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=1.25,  # never much later than a quarter of the outage
    maximum_interval=timedelta(minutes=2),  # at 5 s, the timers of half a day fill a history
    non_retryable_error_types=_DEFECTS,
)
_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5), maximum_attempts=10
)


async def remember(
    activity: str,
    argument: Any,
    result_type: type[R],
    summary: str,
    *,
    patience: timedelta | None = _STORE_PATIENCE,
) -> R:
    """Read or write the store, retried until `patience` is over (None: for ever).

    Queries wait while an attempt runs: where the wait may have no end, attempts are short and timers lie
    between them.
    """
    endless = patience is None
    result: R = await workflow.execute_local_activity(
        activity,
        argument,
        result_type=result_type,
        start_to_close_timeout=_ENDLESS_ATTEMPT if endless else _STORE_ATTEMPT,
        schedule_to_close_timeout=patience,
        retry_policy=_ENDLESS_RETRY if endless else _STORE_RETRY,
        local_retry_threshold=timedelta(milliseconds=100) if endless else timedelta(seconds=2),
        summary=summary,
    )
    return result


async def note(activity: str, argument: Any, result_type: type[R], summary: str) -> R:
    """Write to the store what a message brought, for as long as it takes.

    An activity, not a local one: an update stands in history only when its workflow task is complete, and a
    local activity of a task that fails at its end has told the store of an answer that nobody gave.
    """
    result: R = await workflow.execute_activity(
        activity,
        argument,
        result_type=result_type,
        start_to_close_timeout=_STORE_ATTEMPT,
        retry_policy=_STORE_RETRY,  # the server repeats it, and history does not grow
        summary=summary,
    )
    return result


async def commit(activity: str, argument: Any, result_type: type[R], summary: str) -> R:
    """Commit what was staged in a local activity, or in an activity when that answers that it is too much."""
    answer: Any = result_type | None
    committed: R | None = await remember(activity, argument, answer, summary)
    if committed is not None:
        return committed
    result: R = await workflow.execute_activity(
        activity,
        argument,
        result_type=result_type,
        start_to_close_timeout=_LARGE_COMMIT,
        schedule_to_close_timeout=_LARGE_COMMIT + _STORE_PATIENCE,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=_STORE_RETRY,
        summary=summary,
    )
    return result


async def open_session(argument: Any, result_type: type[R]) -> R:
    """Create or load the session; longer than a local activity, for it may store packages."""
    return await _perform(names.OPEN_SESSION, argument, result_type, "open session", start_to_close=_SETUP)


async def configure_session(argument: Any, result_type: type[R]) -> R:
    """Apply a configuration; longer than a local activity, for it may store packages."""
    return await _perform(names.CONFIGURE_SESSION, argument, result_type, "configure", start_to_close=_SETUP)


async def reconcile_jobs(argument: Any, result_type: type[R]) -> R:
    """Ask Temporal how jobs stand."""
    return await _perform(
        names.RECONCILE_JOBS, argument, result_type, "reconcile jobs", start_to_close=_SETUP
    )


async def ask_model(argument: Any, result_type: type[R], summary: str) -> R:
    """Run one step's model call."""
    return await _perform(names.CALL_MODEL, argument, result_type, summary, start_to_close=CEILING)


async def use_tool(argument: Any, result_type: type[R], summary: str) -> R:
    """Run one tool of a package."""
    return await _perform(names.RUN_TOOL, argument, result_type, summary, start_to_close=CEILING)


async def run_function(
    argument: Any,
    result_type: type[R],
    summary: str,
    *,
    timeout: timedelta,
    queue_timeout: timedelta | None = None,
) -> R:
    """Run a function runtime on the functions queue of this workflow's family (DECISIONS 18)."""
    return await _perform(
        names.RUN_FUNCTION,
        argument,
        result_type,
        summary,
        start_to_close=timeout + HEARTBEAT_TIMEOUT,
        task_queue=names.functions_queue(workflow.info().task_queue),
        schedule_to_start=queue_timeout,
    )


async def _perform(
    activity: str,
    argument: Any,
    result_type: type[R],
    summary: str,
    *,
    start_to_close: timedelta,
    task_queue: str | None = None,
    schedule_to_start: timedelta | None = None,
) -> R:
    result: R = await workflow.execute_activity(
        activity,
        argument,
        result_type=result_type,
        task_queue=task_queue,
        start_to_close_timeout=start_to_close,
        schedule_to_start_timeout=schedule_to_start,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=_RETRY,
        cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
        summary=summary,
    )
    return result


def failure_of(error: BaseException) -> Failure:
    """The code and message of whatever ended an activity or a child."""
    cause: BaseException | None = error
    while isinstance(cause, ActivityError | ChildWorkflowError) and cause.cause:
        cause = cause.cause
    if isinstance(cause, ApplicationError):
        code = Code(cause.type) if cause.type in set(Code) else Code.INTERNAL
        return Failure(code=code, message=outline(account_in(cause.message, code)))
    if isinstance(cause, TimeoutError):
        return Failure(code=Code.RUNTIME_TIMEOUT, message=outline(cause.message))
    return Failure(code=Code.WORKFLOW_FAILED, message=outline(str(cause) or type(cause).__name__))


def is_cancelled(error: BaseException) -> bool:
    """Whether an error is a cancellation, bare or wrapped by an activity or a child."""
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else error
    return isinstance(cause, CancelledError)


def cancellation_requested() -> bool:
    """Whether somebody asked this workflow to stop, however long ago."""
    return workflow.cancellation_reason() is not None


def heed_cancellation() -> None:
    """Raise a cancellation that was asked for.

    One that arrives together with an activity's result is swallowed by the wait for that result.

    Raises:
        asyncio.CancelledError: when this workflow shall stop.
    """
    if cancellation_requested():
        raise asyncio.CancelledError


def refused(failure: Failure) -> ApplicationError:
    """The failure of a workflow, under its code."""
    return ApplicationError(f"{failure.code}: {failure.message}", type=failure.code.value, non_retryable=True)


def now() -> float:
    """Workflow time as Unix seconds."""
    return workflow.now().timestamp()
