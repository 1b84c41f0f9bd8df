"""The inbox of questions to people. Session's workflow judges them; this is what people read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import update

from store import rows
from store.connection import Connection
from store.tables import approvals


@dataclass(frozen=True)
class Approval:
    """One question.

    Attributes:
        workflow_id: the agent that waits.
        status: open, approved, denied, expired or withdrawn.
        actor: who answered; empty when the deadline did.
    """

    ref: str
    session_id: str
    turn_id: str
    runtime_id: str
    call_id: str
    tool: str
    workflow_id: str
    arguments: Any
    status: str
    note: str
    actor: str
    opened_at: float
    deadline: float
    closed_at: float | None


async def record(
    conn: Connection,
    *,
    ref: str,
    session_id: str,
    turn_id: str,
    runtime_id: str,
    call_id: str,
    tool: str,
    workflow_id: str,
    arguments: Any,
    opened_at: float,
    deadline: float,
) -> tuple[Approval, bool]:
    """Put a question into the inbox once: the row that stands, and whether it is new."""
    values: dict[str, Any] = {"ref": ref, "session_id": session_id, "turn_id": turn_id}
    values |= {"runtime_id": runtime_id, "call_id": call_id, "tool": tool, "workflow_id": workflow_id}
    values |= {"arguments": arguments, "opened_at": opened_at, "deadline": deadline}
    new = await rows.insert_if_absent(conn, approvals, {**values, "status": "open", "note": "", "actor": ""})
    approval = await get(conn, ref)
    if approval is None:
        raise RuntimeError("an approval that was just stored cannot be read")
    return approval, new


async def close(
    conn: Connection,
    ref: str,
    *,
    status: str,
    note: str = "",
    actor: str = "",
    now: float | None = None,
) -> bool:
    """Record an answer; False when the question is closed or unknown, and nothing changes then."""
    still_open = (approvals.c.ref == ref) & (approvals.c.status == "open")
    changes = {"status": status, "note": note, "actor": actor, "closed_at": rows.moment(now)}
    return await rows.affected(conn, update(approvals).where(still_open).values(**changes)) == 1


async def get(conn: Connection, ref: str) -> Approval | None:
    """The question, or None."""
    return await rows.one(conn, Approval, rows.columns(Approval, approvals).where(approvals.c.ref == ref))


async def list_approvals(
    conn: Connection, *, session_id: str | None = None, status: str | None = "open", limit: int = 100
) -> list[Approval]:
    """Questions, oldest first: of one session or of all, of one status or of any."""
    statement = rows.columns(Approval, approvals)
    if session_id is not None:
        statement = statement.where(approvals.c.session_id == session_id)
    if status is not None:
        statement = statement.where(approvals.c.status == status)
    oldest = statement.order_by(approvals.c.opened_at, approvals.c.ref)
    return await rows.many(conn, Approval, oldest.limit(limit))
