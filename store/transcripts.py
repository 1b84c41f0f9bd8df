"""What an agent run said and heard, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from store import rows
from store.connection import Connection
from store.tables import transcripts


@dataclass(frozen=True)
class Entry:
    """One message of a run; `message` is the whole of it, role included."""

    owner_id: str
    runtime_id: str
    ordinal: int
    step: int
    role: str
    message: Any


_RUN = rows.given(transcripts, "owner_id", "runtime_id")
_ENTRIES = rows.columns(Entry, transcripts).where(*_RUN)
_IN_ORDER = _ENTRIES.order_by(transcripts.c.ordinal)
_LAST = (
    _ENTRIES.where(*rows.given(transcripts, "step", "role")).order_by(transcripts.c.ordinal.desc()).limit(1)
)
MOST_OF_STEP = 100
"""How many messages one step may hold; its last one has the step's last number."""


async def add(
    conn: Connection,
    owner_id: str,
    runtime_id: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    step: int,
) -> list[Entry]:
    """Store the messages of one step, each with a `role`, once: an activity that runs again adds nothing.

    Returns:
        The new entries; none when the step was stored before.
    """
    last = (step + 1) * MOST_OF_STEP - 1
    first = last - len(messages) + 1
    new = [
        {
            "owner_id": owner_id,
            "runtime_id": runtime_id,
            "ordinal": first + place,
            "step": step,
            "role": message["role"],
            "message": dict(message),
        }
        for place, message in enumerate(messages)
    ]
    if not await rows.insert_if_absent(conn, transcripts, new[-1]):
        return []
    await rows.insert_all(conn, transcripts, new[:-1])
    return [Entry(**row) for row in new]


async def load(
    conn: Connection, owner_id: str, runtime_id: str, *, before_step: int | None = None
) -> list[Entry]:
    """The transcript in order; `before_step` leaves out that step and later ones."""
    statement = _IN_ORDER if before_step is None else _IN_ORDER.where(transcripts.c.step < before_step)
    return await rows.many(conn, Entry, statement, owner_id=owner_id, runtime_id=runtime_id)


async def find(
    conn: Connection, owner_id: str, runtime_id: str, *, step: int, role: str = "assistant"
) -> Entry | None:
    """The last message of a role at a step, or None: the stored reply of a call that runs again."""
    return await rows.one(conn, Entry, _LAST, owner_id=owner_id, runtime_id=runtime_id, step=step, role=role)
