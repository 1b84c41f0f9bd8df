"""One open database: read and write transactions on SQLite or PostgreSQL.

Store.open(url)     checks that the database answers and is migrated
store.read()        a read-only transaction
store.write()       a transaction that commits when its block ends without an exception
savepoint(conn)     a nested part of a transaction that may fail alone
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, Self

from sqlalchemy import URL, event, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.util import await_only

from kernel.errors import Code, TurnwrightError
from store import address, sqlite_driver
from store.lanes import Lanes
from store.wakes import Wakes

HEAD = "0001"
"""The schema revision that this code reads and writes."""

BUSY_S = 30.0
"""How many seconds a SQLite writer waits for another process's transaction."""

MIGRATE = "`turnwright migrate` (`dev` and `demo` do it by themselves), or another `store.url`"
"""What helps where the schema is missing or of another version."""

_READERS = 4
_POOL = 8


class Store:
    """A database that is open; made by `open`, belongs to one event loop."""

    def __init__(self, url: URL, reader: AsyncEngine, writer: AsyncEngine) -> None:
        self.url = url
        self.dialect: Literal["sqlite", "postgresql"] = (
            "sqlite" if address.sqlite_file(url) is not None else "postgresql"
        )
        self._reader = reader
        self._writer = writer
        self._reading = Lanes(reader, _READERS)
        self._writing = Lanes(writer, 1)
        self._holder: asyncio.Task[Any] | None = None
        self.wakes = Wakes(None if self.dialect == "sqlite" else url)

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
        store = cls(parsed, *_engines(parsed))
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
        await self._reading.close()
        await self._writing.close()
        await self._reader.dispose()
        await self._writer.dispose()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A read-only transaction; writing in it fails."""
        lane = self._reader.begin() if self.dialect == "postgresql" else self._reading.transaction()
        async with lane as conn:
            yield conn

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits when the block ends, and rolls back when it raises.

        On SQLite it holds the file's one write lock: await nothing slow inside.
        """
        if self.dialect == "postgresql":
            async with self._writer.begin() as conn:
                yield conn
            return
        # Writers of one process queue here, in order: SQLite's own waiting is a sleep that grows.
        if self._holder is asyncio.current_task():
            raise RuntimeError("a write transaction inside a write transaction would wait for itself")
        async with self._writing.transaction() as conn:
            self._holder = asyncio.current_task()
            try:
                yield conn
            finally:
                self._holder = None


def savepoint(conn: AsyncConnection) -> AbstractAsyncContextManager[Any]:
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


async def read_revision(conn: AsyncConnection) -> str | None:
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


def sqlite_engine(url: URL, *, writes: bool) -> AsyncEngine:
    """An engine on a SQLite file whose transactions begin as the file's other users expect."""
    engine = create_async_engine(
        url,
        pool_size=1 if writes else _READERS,
        max_overflow=0,
        hide_parameters=True,  # an error of the driver goes into logs and histories; the story does not
        connect_args={"async_creator_fn": sqlite_driver.connect, "busy_s": BUSY_S, "writes": writes},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY"):
            cursor.execute(f"PRAGMA {pragma}")
        # Waiting inside SQLite would stop the event loop; a writer waits between its attempts to begin, and
        # the driver copies the log into the file in a thread.
        if writes:
            cursor.execute("PRAGMA wal_autocheckpoint=0")
        cursor.execute("PRAGMA busy_timeout=0" if writes else "PRAGMA query_only=ON")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        # A deferred transaction that turns into a writer fails at once when another has written since.
        # Straight to the driver: as a statement it would cost a third of a small transaction.
        driver = connection.connection.driver_connection
        try:
            if writes:
                await_only(driver.begin_immediate())
            else:
                driver.raw.execute("BEGIN")
        except sqlite3.Error as error:
            raise OperationalError("BEGIN", None, error) from error

    return engine


def postgres_engine(url: URL) -> AsyncEngine:
    """An engine on a PostgreSQL database."""
    return create_async_engine(
        address.driver_url(url),
        isolation_level="READ COMMITTED",
        pool_size=_POOL,
        max_overflow=0,
        hide_parameters=True,
        pool_recycle=1800,
        pool_pre_ping=True,
        connect_args=address.connect_arguments(url),
    )


def _engines(url: URL) -> tuple[AsyncEngine, AsyncEngine]:
    if address.sqlite_file(url) is not None:
        return sqlite_engine(url, writes=False), sqlite_engine(url, writes=True)
    engine = postgres_engine(url)
    return engine.execution_options(postgresql_readonly=True), engine


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
