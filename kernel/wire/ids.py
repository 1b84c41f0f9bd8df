"""Workflow ids: printed from their parts and parsed back, each the inverse of the other.

A segment is percent-escaped, so that `/` inside an id never reads as a border (DECISIONS 28).
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple, cast
from urllib.parse import quote, unquote

from kernel.errors import Code, TurnwrightError

MAX_ID_BYTES = 200
"""Longest escaped id of a session or action; a turn's workflow id then stays far below Temporal's 1,000."""

Kind = Literal["session", "turn", "agent", "job"]
_SEGMENTS: dict[str, tuple[int, ...]] = {"session": (1,), "turn": (2,), "agent": (2, 3), "job": (1,)}


class WorkflowRef(NamedTuple):
    """What a workflow id names: its kind and its unescaped segments."""

    kind: Kind
    parts: tuple[str, ...]


def check_id(value: str, what: str) -> str:
    """Return `value` when it can name a session or an action; raise `session.id-invalid` otherwise."""
    try:
        size = len(quote(value, safe=""))
    except UnicodeEncodeError:
        size = 0
    if 0 < size <= MAX_ID_BYTES and value.isprintable() and value == value.strip():
        return value
    accepted = f"1 to {MAX_ID_BYTES} bytes (percent-escaped) of printable text without outer spaces"
    raise TurnwrightError(Code.SESSION_ID, f"{what} {value[:40]!r} cannot be used", accepted=accepted)


def session_workflow(session_id: str) -> str:
    """`session/<session_id>`."""
    return _print("session", session_id)


def turn_workflow(session_id: str, turn_id: str) -> str:
    """`turn/<session_id>/<turn_id>`."""
    return _print("turn", session_id, turn_id)


def agent_workflow(owner_id: str, runtime_id: str, call: str | None = None) -> str:
    """`agent/<turn_id or job_id>/<runtime_id>[/<call>]`."""
    return _print("agent", owner_id, runtime_id, *([call] if call else []))


def job_workflow(job_id: str) -> str:
    """`job/<job_id>`."""
    return _print("job", job_id)


def parse_workflow_id(workflow_id: str) -> WorkflowRef | None:
    """The reference that a workflow id of ours prints, or None for a foreign one."""
    kind, *segments = workflow_id.split("/")
    if len(segments) not in _SEGMENTS.get(kind, ()):
        return None
    parts = tuple(unquote(segment) for segment in segments)
    if not all(parts) or _print(kind, *parts) != workflow_id:
        return None
    return WorkflowRef(cast(Kind, kind), parts)


def turn_id_for(session_id: str, action_id: str) -> str:
    """The turn of an action: the same action is the same turn, however long ago."""
    return "t" + _digest("turn", session_id, action_id)


def job_id_for(turn_id: str, runtime_id: str) -> str:
    """The job that a detached runtime of a turn becomes."""
    return "j" + _digest("job", turn_id, runtime_id)


def approval_id_for(owner_id: str, runtime_id: str, call_id: str, arguments_digest: str) -> str:
    """The approval of one call with exactly these arguments."""
    return "a" + _digest("approval", owner_id, runtime_id, call_id, arguments_digest)


def _print(*segments: str) -> str:
    return "/".join(quote(segment, safe="~:@") for segment in segments)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
