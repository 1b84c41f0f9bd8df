"""Statements that every concern needs: typed reads, idempotent inserts, numbering, a lock by name."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Executable, Select, Table, bindparam, func, select, text
from sqlalchemy.dialects import postgresql, sqlite

from store.connection import Connection

T = TypeVar("T")


def moment(now: float | None) -> float:
    """The given time, or the clock's, in Unix seconds."""
    return time.time() if now is None else now


@lru_cache(maxsize=64)
def columns(kind: type[Any], table: Table) -> Select[Any]:
    """Select exactly the columns that a record type has fields for."""
    return select(*(table.c[field.name] for field in fields(kind)))


async def one(conn: Connection, kind: type[T], statement: Select[Any], **values: Any) -> T | None:
    """The first row as a record, or None; `values` are those of the statement's parameters."""
    row = (await conn.execute(statement, values)).first()
    return None if row is None else kind(*row)


async def many(conn: Connection, kind: type[T], statement: Select[Any], **values: Any) -> list[T]:
    """Every row as a record; `values` are those of the statement's parameters."""
    return [kind(*row) for row in await conn.execute(statement, values)]


def given(table: Table, *names: str) -> list[ColumnElement[bool]]:
    """Conditions on columns whose values are parameters of the same name.

    A statement that every step of a run needs is built once, at import: building it for each use costs more
    than running it on SQLite.
    """
    return [table.c[name] == bindparam(name) for name in names]


async def insert_if_absent(conn: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert a row unless one with the same key exists; tell whether it was inserted.

    A concurrent transaction that inserts the same key is waited for.
    """
    statement = _inserting(conn.dialect.name, table)
    return (await conn.execute(statement, dict(values))).rowcount == 1


async def upsert(conn: Connection, table: Table, values: Mapping[str, Any]) -> None:
    """Insert a row, or give the existing row of that key these values."""
    await conn.execute(_upserting(conn.dialect.name, table, tuple(values)), dict(values))


async def insert_all(conn: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that are new."""
    if rows:
        new = [dict(row) for row in rows]
        await conn.execute(_plainly_inserting(table), new if len(new) > 1 else new[0])


async def next_number(
    conn: Connection, column: ColumnElement[int], *where: ColumnElement[bool], first: int = 1
) -> int:
    """One more than the highest number so far. The caller holds a lock over the numbered rows."""
    highest = (await conn.execute(select(func.max(column)).where(*where))).scalar()
    return first if highest is None else int(highest) + 1


async def affected(conn: Connection, statement: Executable) -> int:
    """Execute, and count the rows that changed."""
    return (await conn.execute(statement)).rowcount


async def serialise(conn: Connection, *name: str) -> None:
    """Let one transaction at a time pass for a name, until it ends. A SQLite writer is alone anyway.

    Lock order: a session's row (`sessions.lock`) comes before any name.
    """
    if conn.dialect.name == "postgresql":
        key = "\x1f".join(name).replace("\x00", "")
        await conn.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"), {"key": key})


def below(prefix: str) -> str | None:
    """The least string above every string that starts with `prefix`; None when there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    last = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if last == 0xD800 else last)


def starts_with(column: ColumnElement[str], prefix: str) -> list[ColumnElement[bool]]:
    """Conditions for a prefix that an index serves on both databases."""
    end = below(prefix)
    return [column >= prefix, *([column < end] if end is not None else [])]


# Building a statement costs more than running it on SQLite: what only depends on the table is built once.


@lru_cache(maxsize=64)
def _plainly_inserting(table: Table) -> Any:
    return table.insert()


@lru_cache(maxsize=128)
def _inserting(dialect: str, table: Table) -> Any:
    return inserting(dialect, table).on_conflict_do_nothing()


@lru_cache(maxsize=256)
def _upserting(dialect: str, table: Table, names: tuple[str, ...]) -> Any:
    keys = [column.name for column in table.primary_key]
    insert = inserting(dialect, table)
    changed = {name: insert.excluded[name] for name in names if name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)


def inserting(dialect: str, table: Table) -> Any:
    """An insert of the dialect, for conflict clauses of one's own."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
