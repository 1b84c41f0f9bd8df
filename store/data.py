"""Plugin data: versioned records under package, namespace and key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, delete, update

from kernel.errors import Code, TurnwrightError
from store import rows
from store.connection import Connection
from store.tables import data

ABSENT = 0
"""Expected version of a record that must not exist yet."""


@dataclass(frozen=True)
class Record:
    """A record. `version` counts its writes from 1; after a removal it starts again."""

    session_id: str
    package_id: str
    namespace: str
    key: str
    value: Any
    version: int
    turn_id: str
    created_at: float
    updated_at: float


@dataclass(frozen=True)
class Page:
    """A part of a listing. `cursor`: hand it back for the next part; None at the end."""

    records: tuple[Record, ...]
    cursor: str | None


_ONE = rows.columns(Record, data).where(*rows.given(data, "session_id", "package_id", "namespace", "key"))


async def get(conn: Connection, session_id: str, package_id: str, namespace: str, key: str) -> Record | None:
    """The record, or None."""
    own = {"session_id": session_id, "package_id": package_id, "namespace": namespace, "key": key}
    return await rows.one(conn, Record, _ONE, **own)


async def list_records(
    conn: Connection,
    session_id: str,
    package_id: str,
    namespace: str,
    *,
    prefix: str = "",
    limit: int = 50,
    cursor: str | None = None,
) -> Page:
    """Records by key in code-point order."""
    statement = _namespace(session_id, package_id, namespace)
    statement = statement.where(*rows.starts_with(data.c.key, prefix)) if prefix else statement
    if cursor is not None:
        statement = statement.where(data.c.key > cursor)
    found = await rows.many(conn, Record, statement.order_by(data.c.key).limit(limit + 1))
    return Page(tuple(found[:limit]), found[limit - 1].key if len(found) > limit else None)


async def put(
    conn: Connection,
    session_id: str,
    package_id: str,
    namespace: str,
    key: str,
    *,
    value: Any,
    turn_id: str,
    expected: int | None = None,
    now: float | None = None,
) -> Record:
    """Write a record. The caller holds `sessions.lock`.

    Args:
        expected: the version that must stand, `ABSENT` for none; None writes over anything.

    Raises:
        TurnwrightError: `store.conflict` when another version stands.
    """
    standing = await get(conn, session_id, package_id, namespace, key)
    _check(standing, expected, f"{package_id} {namespace}/{key}")
    time = rows.moment(now)
    record = Record(
        session_id=session_id,
        package_id=package_id,
        namespace=namespace,
        key=key,
        value=value,
        version=1 if standing is None else standing.version + 1,
        turn_id=turn_id,
        created_at=time if standing is None else standing.created_at,
        updated_at=time,
    )
    if standing is None:
        changed = int(await rows.insert_if_absent(conn, data, vars(record)))
    else:
        changes = {name: getattr(record, name) for name in ("value", "version", "turn_id", "updated_at")}
        unchanged = update(data).where(*_key(record), data.c.version == standing.version)
        changed = await rows.affected(conn, unchanged.values(**changes))
    if changed != 1:
        raise _conflict(f"{package_id} {namespace}/{key}", expected, None)
    return record


async def overwrite(
    conn: Connection,
    session_id: str,
    package_id: str,
    items: Sequence[tuple[str, str, Any]],
    *,
    turn_id: str,
    now: float | None = None,
) -> None:
    """Write records over whatever stands, as one statement. The caller holds `sessions.lock`.

    Args:
        items: (namespace, key, value) each; of a key that is there twice the last one stands.
    """
    time = rows.moment(now)
    fixed = {"session_id": session_id, "package_id": package_id, "version": 1, "turn_id": turn_id}
    new = [
        {**fixed, "namespace": namespace, "key": key, "value": value, "created_at": time, "updated_at": time}
        for namespace, key, value in items
    ]
    if new:
        await conn.execute(_overwriting(conn.dialect.name), new)


@lru_cache(maxsize=2)
def _overwriting(dialect: str) -> Any:
    statement = rows.inserting(dialect, data)
    kept = {name: statement.excluded[name] for name in ("value", "turn_id", "updated_at")}
    key = (data.c.session_id, data.c.package_id, data.c.namespace, data.c.key)
    return statement.on_conflict_do_update(index_elements=key, set_={**kept, "version": data.c.version + 1})


async def remove(
    conn: Connection,
    session_id: str,
    package_id: str,
    namespace: str,
    key: str,
    *,
    expected: int | None = None,
) -> bool:
    """Remove a record; tell whether there was one. Raises as `put` does."""
    standing = await get(conn, session_id, package_id, namespace, key)
    _check(standing, expected, f"{package_id} {namespace}/{key}")
    if standing is None:
        return False
    statement = delete(data).where(*_key(standing), data.c.version == standing.version)
    if await rows.affected(conn, statement) != 1:
        raise _conflict(f"{package_id} {namespace}/{key}", expected, None)
    return True


def _check(standing: Record | None, expected: int | None, where: str) -> None:
    version = ABSENT if standing is None else standing.version
    if expected is not None and expected != version:
        raise _conflict(where, expected, version)


def _conflict(where: str, expected: int | None, current: int | None) -> TurnwrightError:
    return TurnwrightError(
        Code.STORE_CONFLICT,
        "the record has changed meanwhile",
        where=where,
        accepted="the version that stands now",
        details={"expected": expected, "current": current},
    )


def _namespace(session_id: str, package_id: str, namespace: str) -> Select[Any]:
    own = (data.c.session_id == session_id) & (data.c.package_id == package_id)
    return rows.columns(Record, data).where(own & (data.c.namespace == namespace))


def _key(record: Record) -> tuple[Any, ...]:
    names = ("session_id", "package_id", "namespace", "key")
    return tuple(data.c[name] == getattr(record, name) for name in names)
