"""Committed copies of outputs, numbered per runtime and name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from store import rows
from store.connection import Connection
from store.tables import exports


@dataclass(frozen=True)
class Export:
    """One committed export; `number` counts from 1."""

    session_id: str
    runtime_id: str
    name: str
    number: int
    value: Any
    turn_id: str
    created_at: float


async def append(
    conn: Connection,
    session_id: str,
    runtime_id: str,
    name: str,
    *,
    value: Any,
    turn_id: str,
    now: float | None = None,
) -> Export:
    """Commit the next export of a name. The caller holds `sessions.lock`."""
    number = await rows.next_number(conn, exports.c.number, *_name(session_id, runtime_id, name))
    export = Export(session_id, runtime_id, name, number, value, turn_id, rows.moment(now))
    await rows.insert_all(conn, exports, [vars(export)])
    return export


async def get(conn: Connection, session_id: str, runtime_id: str, name: str, number: int) -> Export | None:
    """One export by its number: a turn reads the one that its generation froze."""
    same = (*_name(session_id, runtime_id, name), exports.c.number == number)
    return await rows.one(conn, Export, rows.columns(Export, exports).where(*same))


async def latest(conn: Connection, session_id: str, runtime_id: str, name: str) -> Export | None:
    """The last export of a name, or None."""
    statement = rows.columns(Export, exports).where(*_name(session_id, runtime_id, name))
    return await rows.one(conn, Export, statement.order_by(exports.c.number.desc()).limit(1))


def _name(session_id: str, runtime_id: str, name: str) -> tuple[Any, ...]:
    own = (exports.c.session_id == session_id, exports.c.runtime_id == runtime_id)
    return (*own, exports.c.name == name)
