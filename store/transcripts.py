"""What an agent run said and heard, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    first = await rows.next_number(conn, transcripts.c.ordinal, *_own(owner_id, runtime_id))
    run = {"owner_id": owner_id, "runtime_id": runtime_id, "step": step}
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
    statement = rows.columns(Entry, transcripts).where(*_own(owner_id, runtime_id))
    if before_step is not None:
        statement = statement.where(transcripts.c.step < before_step)
    return await rows.many(conn, Entry, statement.order_by(transcripts.c.ordinal))


async def find(
    conn: AsyncConnection, owner_id: str, runtime_id: str, *, step: int, role: str = "assistant"
) -> Entry | None:
    """The last message of a role at a step, or None: the stored reply of a call that runs again."""
    statement = rows.columns(Entry, transcripts).where(*_own(owner_id, runtime_id))
    statement = statement.where(transcripts.c.step == step, transcripts.c.role == role)
    return await rows.one(conn, Entry, statement.order_by(transcripts.c.ordinal.desc()).limit(1))


def _own(owner_id: str, runtime_id: str) -> tuple[Any, Any]:
    return transcripts.c.owner_id == owner_id, transcripts.c.runtime_id == runtime_id
