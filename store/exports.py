"""Committed copies of outputs, numbered per runtime and name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from store import rows
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
    conn: AsyncConnection,
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


async def get(
    conn: AsyncConnection, session_id: str, runtime_id: str, name: str, number: int
) -> Export | None:
    """One export by its number: a turn reads the one that its generation froze."""
    same = (*_name(session_id, runtime_id, name), exports.c.number == number)
    return await rows.one(conn, Export, rows.columns(Export, exports).where(*same))


async def latest(conn: AsyncConnection, session_id: str, runtime_id: str, name: str) -> Export | None:
    """The last export of a name, or None."""
    statement = rows.columns(Export, exports).where(*_name(session_id, runtime_id, name))
    return await rows.one(conn, Export, statement.order_by(exports.c.number.desc()).limit(1))


async def list_latest(conn: AsyncConnection, session_id: str) -> list[Export]:
    """The last export of every runtime and name, in code-point order."""
    own = exports.c.session_id == session_id
    key = (exports.c.runtime_id, exports.c.name)
    last = select(*key, func.max(exports.c.number).label("number")).where(own).group_by(*key).subquery()
    same = and_(exports.c.runtime_id == last.c.runtime_id, exports.c.name == last.c.name)
    statement = rows.columns(Export, exports).join(last, and_(same, exports.c.number == last.c.number))
    return await rows.many(conn, Export, statement.where(own).order_by(*key))


async def latest_numbers(conn: AsyncConnection, session_id: str) -> dict[tuple[str, str], int]:
    """The number of the last export by runtime and name, without its value."""
    own = exports.c.session_id == session_id
    key = (exports.c.runtime_id, exports.c.name)
    statement = select(*key, func.max(exports.c.number)).where(own).group_by(*key).order_by(*key)
    return {(row[0], row[1]): row[2] for row in await conn.execute(statement)}


def _name(session_id: str, runtime_id: str, name: str) -> tuple[Any, ...]:
    own = (exports.c.session_id == session_id, exports.c.runtime_id == runtime_id)
    return (*own, exports.c.name == name)
