"""Steering text for a running story, as people sent it."""

from __future__ import annotations

from dataclasses import dataclass

from store import rows
from store.connection import Connection
from store.tables import interjections


@dataclass(frozen=True)
class Interjection:
    """One interjection; `turn_id` is None when no turn was running."""

    session_id: str
    interjection_id: str
    turn_id: str | None
    text: str
    created_at: float


async def add(
    conn: Connection,
    *,
    session_id: str,
    interjection_id: str,
    turn_id: str | None,
    text: str,
    now: float | None = None,
) -> bool:
    """Record an interjection once; tell whether this call did."""
    values = {"session_id": session_id, "interjection_id": interjection_id, "turn_id": turn_id}
    return await rows.insert_if_absent(
        conn, interjections, {**values, "text": text, "created_at": rows.moment(now)}
    )


async def list_of_turn(conn: Connection, session_id: str, turn_id: str) -> list[Interjection]:
    """The interjections of a turn in the order they came."""
    own = (interjections.c.session_id == session_id) & (interjections.c.turn_id == turn_id)
    statement = rows.columns(Interjection, interjections).where(own)
    in_order = statement.order_by(interjections.c.created_at, interjections.c.interjection_id)
    return await rows.many(conn, Interjection, in_order)
