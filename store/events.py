"""Events that commits published, in order: an outbox that any number of readers follow by position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from store import rows
from store.connection import Connection
from store.tables import events


@dataclass(frozen=True)
class Event:
    """One published event; `position` counts from 1 within its session."""

    session_id: str
    position: int
    turn_id: str
    runtime_id: str
    topic: str
    payload: Any
    created_at: float


async def append(
    conn: Connection,
    session_id: str,
    *,
    turn_id: str,
    runtime_id: str,
    topic: str,
    payload: Any,
    now: float | None = None,
) -> Event:
    """Publish an event with this transaction. The caller holds `sessions.lock`."""
    position = await rows.next_number(conn, events.c.position, events.c.session_id == session_id)
    event = Event(session_id, position, turn_id, runtime_id, topic, payload, rows.moment(now))
    await rows.insert_all(conn, events, [vars(event)])
    return event


async def list_events(conn: Connection, session_id: str, *, after: int = 0, limit: int = 100) -> list[Event]:
    """Events behind a position, in order."""
    own = rows.columns(Event, events).where(events.c.session_id == session_id, events.c.position > after)
    return await rows.many(conn, Event, own.order_by(events.c.position).limit(limit))
