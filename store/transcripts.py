"""What an agent run said and heard, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from store import rows
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


async def lock(conn: AsyncConnection, owner_id: str, runtime_id: str) -> None:
    """Let one transaction at a time look for an entry and append it."""
    await rows.serialise(conn, "transcript", owner_id, runtime_id)


_RUN = rows.given(transcripts, "owner_id", "runtime_id")
_ENTRIES = rows.columns(Entry, transcripts).where(*_RUN)
_IN_ORDER = _ENTRIES.order_by(transcripts.c.ordinal)
_LAST = (
    _ENTRIES.where(*rows.given(transcripts, "step", "role")).order_by(transcripts.c.ordinal.desc()).limit(1)
)
_HIGHEST = select(func.max(transcripts.c.ordinal)).where(*_RUN)


async def append(
    conn: AsyncConnection,
    owner_id: str,
    runtime_id: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    step: int,
) -> list[int]:
    """Put messages, each with a `role`, at the end of a run's transcript; returns their ordinals.

    `lock` and `find` first: an activity that runs again meets what it stored before.
    """
    await rows.serialise(conn, "transcript", owner_id, runtime_id)
    own = {"owner_id": owner_id, "runtime_id": runtime_id}
    first = 1 + ((await conn.execute(_HIGHEST, own)).scalar() or 0)
    run = {**own, "step": step}
    new = [
        {**run, "ordinal": first + offset, "role": message["role"], "message": dict(message)}
        for offset, message in enumerate(messages)
    ]
    await rows.insert_all(conn, transcripts, new)
    return [row["ordinal"] for row in new]


async def load(
    conn: AsyncConnection, owner_id: str, runtime_id: str, *, before_step: int | None = None
) -> list[Entry]:
    """The transcript in order; `before_step` leaves out that step and later ones."""
    statement = _IN_ORDER if before_step is None else _IN_ORDER.where(transcripts.c.step < before_step)
    return await rows.many(conn, Entry, statement, owner_id=owner_id, runtime_id=runtime_id)


async def find(
    conn: AsyncConnection, owner_id: str, runtime_id: str, *, step: int, role: str = "assistant"
) -> Entry | None:
    """The last message of a role at a step, or None: the stored reply of a call that runs again."""
    return await rows.one(conn, Entry, _LAST, owner_id=owner_id, runtime_id=runtime_id, step=step, role=role)
