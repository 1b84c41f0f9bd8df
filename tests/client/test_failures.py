"""What the SDK raises becomes the named error, with the workflow it is about."""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowFailureError, WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from client import failures
from client.checks import built, check_payload, check_text, placed
from client.output import error_lines, status_of
from kernel.errors import Code, TurnwrightError
from kernel.wire.session import SessionInput

SESSION = "session/tale"


def refusal(error: TurnwrightError) -> ApplicationError:
    return ApplicationError(str(error), type=error.code, non_retryable=True)


ENDED = TurnwrightError(Code.SESSION_ENDED, "the session has ended", accepted="another session")


@pytest.mark.parametrize(
    "raised",
    [
        refusal(ENDED),
        WorkflowUpdateFailedError(refusal(ENDED)),
        WorkflowFailureError(cause=refusal(ENDED)),
        WorkflowQueryFailedError(str(ENDED)),
    ],
)
def test_a_refusal_comes_back_as_it_was(raised: BaseException) -> None:
    error = failures.named(raised, SESSION)
    assert (error.code, error.message, error.accepted) == (ENDED.code, ENDED.message, ENDED.accepted)
    assert error.where == SESSION


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (RPCError("workflow not found", RPCStatusCode.NOT_FOUND, b""), Code.SESSION_UNKNOWN),
        (RPCError("no poller seen", RPCStatusCode.FAILED_PRECONDITION, b""), Code.WORKER_ABSENT),
        (RPCError("gone", RPCStatusCode.UNAVAILABLE, b""), Code.SERVER_UNREACHABLE),
        (RPCError("who are you", RPCStatusCode.UNAUTHENTICATED, b""), Code.SERVER_UNREACHABLE),
        (ApplicationError("x", type="AcceptedUpdateCompletedWorkflow"), Code.SESSION_ENDED),
        (ApplicationError("boom", type="KeyError"), Code.WORKFLOW_FAILED),
        (WorkflowFailureError(cause=CancelledError("c")), Code.TURN_STOPPED),
        (WorkflowFailureError(cause=TerminatedError("t")), Code.WORKFLOW_FAILED),
    ],
)
def test_every_end_has_a_name(raised: BaseException, code: Code) -> None:
    assert failures.named(raised, SESSION).code == code


@pytest.mark.parametrize(
    ("workflow_id", "code"),
    [("turn/s/t1", Code.TURN_UNKNOWN), ("job/j1", Code.WORKFLOW_FAILED), ("foreign", Code.WORKFLOW_FAILED)],
)
def test_what_is_missing_is_named_by_its_kind(workflow_id: str, code: Code) -> None:
    assert failures.unknown(workflow_id).code == code


def test_place_inside_a_refusal_is_kept() -> None:
    inner = TurnwrightError(Code.PACKAGE_INVALID, "bad", where="dice")
    assert failures.split(str(inner), inner.code, SESSION).message == "dice: bad"


@pytest.mark.parametrize(
    "message",
    [
        "Unable to perform workflow execution update due to unexpected workflow task failure.",
        "Unable to perform workflow execution update due to Workflow Task in failed state.",
    ],
)
def test_an_update_whose_task_was_thrown_away_is_sent_again(message: str) -> None:
    assert failures.is_outage(RPCError(message, RPCStatusCode.FAILED_PRECONDITION, b""))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x" * 65_537, Code.WIRE_TOO_LARGE),
        ("é" * 40_000, Code.WIRE_TOO_LARGE),
        ("\ud800", Code.ACTION_INVALID),
        ("a\0b", Code.ACTION_INVALID),
    ],
)
def test_text_is_checked_before_it_is_sent(text: str, code: Code) -> None:
    with pytest.raises(TurnwrightError) as caught, placed(SESSION):
        check_text(text)
    assert (caught.value.code, caught.value.where) == (code, SESSION)


@pytest.mark.parametrize("payload", [float("nan"), {1, 2}, {"a": ["\udc00"]}, ["x" * 70_000]])
def test_payload_is_checked_before_it_is_sent(payload: object) -> None:
    with pytest.raises(TurnwrightError):
        check_payload(payload)


def test_a_field_that_does_not_fit_is_named() -> None:
    with pytest.raises(TurnwrightError, match="locale"):
        built(SessionInput, {"session_id": "s", "locale": "z" * 50})


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Code.CONFIG_INVALID, 2),
        (Code.SESSION_EXISTS, 3),
        (Code.WIRE_TOO_LARGE, 3),
        (Code.SESSION_UNKNOWN, 4),
        (Code.PACKAGE_UNKNOWN, 4),
        (Code.SERVER_UNREACHABLE, 5),
        (Code.WORKER_ABSENT, 5),
        (Code.STORE_NOT_MIGRATED, 5),
        (Code.WORKFLOW_STUCK, 5),
        (Code.TURN_REJECTED, 6),
        (Code.INTERNAL, 70),
    ],
)
def test_every_code_has_a_status(code: Code, status: int) -> None:
    assert status_of(code) == status


def test_no_code_counts_as_success() -> None:
    assert all(status_of(code) in (2, 3, 4, 5, 6, 70) for code in Code)


def test_an_error_names_code_accepted_and_place() -> None:
    error = TurnwrightError(Code.SESSION_EXISTS, "taken", where=SESSION, accepted="another id")
    assert error_lines(error) == [
        "error: session.exists: taken (accepted: another id)",
        "  where: session/tale",
    ]
