"""What a session refuses before it records anything. Every refusal names what would be accepted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import MAX_TEXT_BYTES, Json
from kernel.wire.ids import check_id
from kernel.wire.session import Configure, Control, Interject, Run, Submit

if TYPE_CHECKING:
    from kernel.session.state import SessionState

MAX_QUEUE = 16
MAX_PENDING = 64
"""Most interjections and configurations that may wait to be written."""


def check_submit(state: SessionState, submit: Submit) -> None:
    """Refuse a submission that cannot become a turn."""
    check_id(submit.action_id, "action_id")
    _check_text(submit.text, "text")
    if not submit.text.strip() and submit.payload is None:
        raise _invalid("an action needs text or a payload", "non-empty text")
    _check_payload(submit.payload)
    _check_open(state, submit.action_id)


def check_run(state: SessionState, run: Run) -> None:
    """Refuse a manual activation that cannot be queued; whether the runtime exists shows in its turn."""
    check_id(run.action_id, "action_id")
    _check_payload(run.payload)
    _check_open(state, run.action_id)


def check_interject(state: SessionState, interject: Interject) -> None:
    """Refuse an interjection that cannot be recorded."""
    check_id(interject.interjection_id, "interjection_id")
    _check_text(interject.text, "text")
    if not interject.text.strip():
        raise _invalid("an interjection needs text", "non-empty text")
    _check_ended(state)
    _check_room(len(state.interjections))


def check_configure(state: SessionState, configure: Configure) -> None:
    """Refuse a configuration that changes nothing, or that a session cannot take any more."""
    if not configure.model_fields_set:
        raise _invalid("nothing to configure", f"at least one of {', '.join(Configure.model_fields)}")
    _check_ended(state)
    _check_room(len(state.configures))


def check_control(state: SessionState, control: Control) -> None:
    """Refuse a request that does not fit the session's status."""
    _check_ended(state)
    if control.action == "cancel-turn" and not state.names_turn(control.turn_id):
        raise TurnwrightError(
            Code.TURN_UNKNOWN,
            f"turn {control.turn_id or '(running)'} is neither running nor queued",
            accepted="the id of the running or of a queued turn, or none for the running one",
        )


def _check_open(state: SessionState, action_id: str) -> None:
    if state.knows(action_id):
        return
    _check_ended(state)
    if state.status == "paused":
        raise TurnwrightError(Code.SESSION_PAUSED, "the session is paused", accepted="`control` resume first")
    if len(state.queue) >= MAX_QUEUE:
        raise TurnwrightError(
            Code.SESSION_QUEUE_FULL,
            f"{MAX_QUEUE} actions are waiting",
            accepted="a submission after the next turn",
        )


def _check_ended(state: SessionState) -> None:
    if state.status == "ended" or state.ending:
        raise TurnwrightError(Code.SESSION_ENDED, "the session has ended", accepted="another session")


def _check_room(waiting: int) -> None:
    if waiting >= MAX_PENDING:
        raise TurnwrightError(
            Code.SESSION_QUEUE_FULL, f"{waiting} requests are waiting", accepted="a later try"
        )


def _check_text(text: str, field: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise TurnwrightError(
            Code.WIRE_TOO_LARGE,
            f"{field} is too long",
            where=field,
            accepted=f"at most {MAX_TEXT_BYTES} bytes of UTF-8",
        )
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise _invalid(f"{field} holds NUL or lone surrogates", "valid Unicode text without NUL")


def _check_payload(payload: Json) -> None:
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    _check_text(text, "payload")
    if _holds_nul(payload):
        raise _invalid("payload holds NUL", "text without NUL")


def _holds_nul(value: Json) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(_holds_nul(item) for item in value)


def _invalid(message: str, accepted: str) -> TurnwrightError:
    return TurnwrightError(Code.ACTION_INVALID, message, accepted=accepted)
