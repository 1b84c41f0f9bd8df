"""What the SDK raises, as the named error that a person can act on."""

from __future__ import annotations

import re
from typing import Final

from temporalio.client import (
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    TerminatedError,
    TimeoutError,
)
from temporalio.service import RPCError, RPCStatusCode

from kernel.errors import Code, TurnwrightError
from kernel.wire.ids import parse_workflow_id

_CODES: Final = frozenset(Code)
_GONE_UPDATE: Final = "AcceptedUpdateCompletedWorkflow"
_TASK_FAILED: Final = ("workflow task failure", "workflow task in failed state")
"""Updates whose task was thrown away, as when a signal came at the moment the workflow ended."""

_HINT: Final = re.compile(r"^(?P<message>.*) \(accepted: (?P<accepted>.*)\)$", re.DOTALL)


def named(error: BaseException, workflow_id: str) -> TurnwrightError:
    """The refusal that an exception of the SDK stands for.

    Args:
        workflow_id: whom the call was for; it becomes the error's place.
    """
    if isinstance(error, TurnwrightError):
        return error
    cause = _innermost(error)
    if isinstance(cause, ApplicationError):
        return _of_application(cause, workflow_id)
    if isinstance(cause, RPCError):
        return _of_rpc(cause, workflow_id)
    if isinstance(cause, WorkflowQueryFailedError | WorkflowQueryRejectedError):
        return _of_query(str(cause), workflow_id)
    if isinstance(cause, CancelledError):
        return TurnwrightError(Code.TURN_STOPPED, "the workflow was cancelled", where=workflow_id)
    if isinstance(cause, TerminatedError):
        message = f"the workflow was terminated: {cause.message}"
        return TurnwrightError(Code.WORKFLOW_FAILED, message, where=workflow_id)
    if isinstance(cause, TimeoutError):
        return TurnwrightError(Code.RUNTIME_TIMEOUT, cause.message, where=workflow_id)
    return TurnwrightError(Code.WORKFLOW_FAILED, str(cause) or type(cause).__name__, where=workflow_id)


def is_silence(error: BaseException) -> bool:
    """Whether a call ended because nobody answered it in time."""
    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError):
        return True
    silent = (RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED)
    return isinstance(error, RPCError) and error.status in silent


def is_outage(error: BaseException) -> bool:
    """Whether the server, or the workflow's task, was away for the moment: the call did nothing."""
    away = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.ABORTED)
    return isinstance(error, RPCError) and (
        error.status in away or any(mark in error.message.lower() for mark in _TASK_FAILED)
    )


def is_missing(error: BaseException) -> bool:
    """Whether the workflow does not exist, or no longer takes messages."""
    return isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND


def unknown(workflow_id: str) -> TurnwrightError:
    """The refusal of a workflow that does not exist, by what its id names."""
    ref = parse_workflow_id(workflow_id)
    name = ref.parts[-1] if ref else workflow_id
    if ref and ref.kind == "session":
        return TurnwrightError(
            Code.SESSION_UNKNOWN,
            f"there is no session {name!r}",
            where=workflow_id,
            accepted="a session that `turnwright session list` shows, or `turnwright session new`",
        )
    kind = ref.kind if ref else "workflow"
    code = Code.TURN_UNKNOWN if kind == "turn" else Code.WORKFLOW_FAILED
    return TurnwrightError(code, f"there is no {kind} {name!r}", where=workflow_id)


def split(text: str, code: Code, where: str) -> TurnwrightError:
    """Take the text of a refusal apart again: `place: code: message (accepted: …)`."""
    place, mark, rest = text.partition(f"{code}: ")
    message = rest if mark else text
    hint = _HINT.match(message)
    if hint:
        message = hint["message"]
    inner = place.rstrip(": ") if mark else ""
    return TurnwrightError(
        code,
        f"{inner}: {message}" if inner and inner != where else message,
        where=where,
        accepted=hint["accepted"] if hint else "",
    )


def _innermost(error: BaseException) -> BaseException:
    wrappers = (WorkflowFailureError, WorkflowUpdateFailedError, ActivityError, ChildWorkflowError)
    while isinstance(error, wrappers) and error.cause is not None:
        error = error.cause
    return error


def _of_application(error: ApplicationError, workflow_id: str) -> TurnwrightError:
    if error.type == _GONE_UPDATE:
        return TurnwrightError(Code.SESSION_ENDED, "the session ended before it answered", where=workflow_id)
    if error.type in _CODES:
        return split(error.message, Code(error.type), workflow_id)
    return TurnwrightError(Code.WORKFLOW_FAILED, f"{error.type}: {error.message}", where=workflow_id)


def _of_rpc(error: RPCError, workflow_id: str) -> TurnwrightError:
    match error.status:
        case RPCStatusCode.NOT_FOUND:
            return unknown(workflow_id)
        case RPCStatusCode.FAILED_PRECONDITION if "no poller" in error.message:
            return TurnwrightError(
                Code.WORKER_ABSENT,
                "no worker answers for this workflow",
                where=workflow_id,
                accepted="a running worker; `turnwright worker` starts one",
            )
        case RPCStatusCode.INVALID_ARGUMENT:
            return _of_query(error.message, workflow_id)
        case RPCStatusCode.PERMISSION_DENIED | RPCStatusCode.UNAUTHENTICATED:
            message = f"the server refuses this client: {error.message}"
            return TurnwrightError(Code.SERVER_UNREACHABLE, message, where=workflow_id)
    message = f"the server does not answer: {error.message}"
    return TurnwrightError(Code.SERVER_UNREACHABLE, message[:500], where=workflow_id)


def _of_query(message: str, workflow_id: str) -> TurnwrightError:
    """A failed query carries its text alone: the code is found in it."""
    for code in Code:
        if f"{code}: " in message:
            return split(message, code, workflow_id)
    return TurnwrightError(Code.WORKFLOW_FAILED, message[:500], where=workflow_id)
