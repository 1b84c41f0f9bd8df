"""Session state: one versioned JSON value per path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete

from kernel.errors import Code, TurnwrightError
from store import rows
from store.connection import Connection
from store.tables import state


@dataclass(frozen=True)
class Value:
    """The value at a path; `version` counts its writes from 1."""

    session_id: str
    path: str
    value: Any
    version: int
    turn_id: str
    updated_at: float


async def get(conn: Connection, session_id: str, path: str) -> Value | None:
    """The value at a path, or None."""
    same = (state.c.session_id == session_id) & (state.c.path == path)
    return await rows.one(conn, Value, rows.columns(Value, state).where(same))


async def put(
    conn: Connection,
    session_id: str,
    path: str,
    *,
    value: Any,
    turn_id: str,
    expected: int | None = None,
    now: float | None = None,
) -> Value:
    """Write the value at a path. The caller holds `sessions.lock`.

    Args:
        expected: the version that must stand, 0 for none; None writes over anything.

    Raises:
        TurnwrightError: `store.conflict` when another version stands.
    """
    standing = await get(conn, session_id, path)
    version = 0 if standing is None else standing.version
    if expected is not None and expected != version:
        raise TurnwrightError(
            Code.STORE_CONFLICT,
            "the state has changed meanwhile",
            where=path,
            accepted="the version that stands now",
            details={"expected": expected, "current": version},
        )
    new = Value(session_id, path, value, version + 1, turn_id, rows.moment(now))
    await rows.upsert(conn, state, vars(new))
    return new


async def remove(conn: Connection, session_id: str, path: str) -> bool:
    """Remove the value at a path; tell whether there was one."""
    same = (state.c.session_id == session_id) & (state.c.path == path)
    return await rows.affected(conn, delete(state).where(same)) == 1
