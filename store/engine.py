"""One open database: read and write transactions on SQLite or PostgreSQL.

Store.open(url)     checks that the database answers and is migrated
store.read()        a read-only transaction
store.write()       a transaction that commits when its block ends without an exception
savepoint(conn)     a nested part of a transaction that may fail alone
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Self

from sqlalchemy import URL, text
from sqlalchemy.exc import DBAPIError

from kernel.errors import Code, TurnwrightError
from store import address
from store.connection import Connection
from store.postgres import Postgres
from store.sqlite import Sqlite
from store.wakes import Wakes

HEAD = "0002"
"""The schema revision that this code reads and writes."""

MIGRATE = "`turnwright migrate` (`dev` and `demo` do it by themselves), or another `store.url`"
"""What helps where the schema is missing or of another version."""


class Store:
    """A database that is open; made by `open`, belongs to one event loop."""

    def __init__(self, url: URL) -> None:
        sqlite = address.sqlite_file(url) is not None
        self.url = url
        self.dialect: Literal["sqlite", "postgresql"] = "sqlite" if sqlite else "postgresql"
        self.wakes = Wakes(None if sqlite else url)
        self._database = database(url)

    @classmethod
    async def open(cls, url: str, *, check: bool = True) -> Self:
        """Open the database.

        Args:
            url: `sqlite:///path` or `postgresql://…`.
            check: refuse a database whose schema is not this code's.

        Raises:
            TurnwrightError: `config.invalid`, `store.unreachable` or `store.not-migrated`.
        """
        parsed = address.parse(url)
        if check:
            require_file(parsed)
        store = cls(parsed)
        try:
            revision = await _probe(store)
            if check and revision != HEAD:
                raise not_migrated(parsed, revision)
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Close every connection. Transactions that still run fail."""
        await self.wakes.close()
        await self._database.close()

    def read(self) -> AbstractAsyncContextManager[Connection]:
        """A read-only transaction; writing in it fails."""
        return self._database.read()

    def write(self) -> AbstractAsyncContextManager[Connection]:
        """A transaction that commits when the block ends, and rolls back when it raises.

        On SQLite it holds the file's one write lock: await nothing slow inside.
        """
        return self._database.write()


def database(url: URL) -> Sqlite | Postgres:
    """The database behind a parsed URL, which nothing was asked yet."""
    return Postgres(url) if address.sqlite_file(url) is None else Sqlite(url)


def savepoint(conn: Connection) -> AbstractAsyncContextManager[Any]:
    """A nested transaction: what its block wrote is undone when the block raises, the rest stays."""
    return conn.begin_nested()


def require_file(url: URL) -> None:
    """Refuse a SQLite URL whose file does not exist yet: connecting would create it, empty."""
    if file := address.missing_file(url):
        raise TurnwrightError(
            Code.STORE_NOT_MIGRATED,
            f"there is no database file {file}",
            where=address.masked(url),
            accepted=f"{MIGRATE}; one that was removed: put back, and every worker started again",
            details={"current": None, "expected": HEAD},
        )


def not_migrated(url: URL, revision: str | None) -> TurnwrightError:
    """The refusal of a database whose schema is another one than this code's."""
    return TurnwrightError(
        Code.STORE_NOT_MIGRATED,
        f"the database has schema revision {revision or 'none'}, this version needs {HEAD}",
        where=address.masked(url),
        accepted=MIGRATE,
        details={"current": revision, "expected": HEAD},
    )


def unreachable(url: URL, error: BaseException) -> TurnwrightError:
    """The refusal when no connection comes about."""
    cause = getattr(error, "orig", None) or error
    reason = " ".join(str(cause).split()) or type(cause).__name__
    if isinstance(error, TimeoutError):
        reason = f"no answer within {address.CONNECT_S:.0f} seconds"
    if url.password:
        reason = reason.replace(str(url.password), "***")
    return TurnwrightError(
        Code.STORE_UNREACHABLE, f"the database cannot be reached: {reason[:300]}", where=address.masked(url)
    )


async def read_revision(conn: Connection) -> str | None:
    """The schema revision that stands in the database, or None when it is empty."""
    dialect = conn.dialect.name
    known = (
        "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
        if dialect == "sqlite"
        else "SELECT 1 WHERE to_regclass('alembic_version') IS NOT NULL"
    )
    if (await conn.execute(text(known))).first() is None:
        return None
    row = (await conn.execute(text("SELECT version_num FROM alembic_version"))).first()
    return None if row is None else str(row[0])


async def _probe(store: Store) -> str | None:
    try:
        async with asyncio.timeout(address.CONNECT_S + 1), store.read() as conn:
            return await read_revision(conn)
    except (OSError, DBAPIError) as error:  # TimeoutError is an OSError
        raise unreachable(store.url, error) from None
    except Exception as error:
        # Refusals while connecting arrive as the driver's own exceptions, which SQLAlchemy does not wrap.
        if type(error).__module__.startswith("asyncpg"):
            raise unreachable(store.url, error) from None
        raise
