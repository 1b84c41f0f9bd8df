"""The conversation of a session, as committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from store import rows
from store.connection import Connection
from store.tables import messages


@dataclass(frozen=True)
class Message:
    """One message. `role` is player or story; `segments` is the split prose of a story, or None."""

    session_id: str
    position: int
    turn_id: str
    runtime_id: str | None
    role: str
    text: str
    segments: list[Any] | None
    created_at: float


async def append(
    conn: Connection,
    session_id: str,
    *,
    turn_id: str,
    role: str,
    text: str,
    segments: Sequence[Any] | None = None,
    runtime_id: str | None = None,
    now: float | None = None,
) -> Message:
    """Put a message at the end of the conversation. The caller holds `sessions.lock`."""
    position = await rows.next_number(conn, messages.c.position, messages.c.session_id == session_id)
    message = Message(
        session_id=session_id,
        position=position,
        turn_id=turn_id,
        runtime_id=runtime_id,
        role=role,
        text=text,
        segments=None if segments is None else list(segments),
        created_at=rows.moment(now),
    )
    await rows.insert_all(conn, messages, [vars(message)])
    return message


async def recent(conn: Connection, session_id: str, limit_turns: int) -> list[Message]:
    """The messages of the last turns that have any, oldest first."""
    own = messages.c.session_id == session_id
    newest = select(func.min(messages.c.position)).where(own).group_by(messages.c.turn_id)
    starts = newest.order_by(func.max(messages.c.position).desc()).limit(max(limit_turns, 0))
    positions = [row[0] for row in await conn.execute(starts)]
    if not positions:
        return []
    statement = rows.columns(Message, messages).where(own, messages.c.position >= min(positions))
    return await rows.many(conn, Message, statement.order_by(messages.c.position))


async def list_all(
    conn: Connection, session_id: str, *, after: int = 0, limit: int | None = None
) -> list[Message]:
    """The conversation in order, behind a position."""
    statement = rows.columns(Message, messages).where(messages.c.session_id == session_id)
    ordered = statement.where(messages.c.position > after).order_by(messages.c.position)
    return await rows.many(conn, Message, ordered if limit is None else ordered.limit(limit))


async def of_turn(conn: Connection, session_id: str, turn_id: str) -> list[Message]:
    """The messages that a turn committed."""
    statement = rows.columns(Message, messages).where(messages.c.session_id == session_id)
    own = statement.where(messages.c.turn_id == turn_id)
    return await rows.many(conn, Message, own.order_by(messages.c.position))
