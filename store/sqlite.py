"""SQLite without a thread between a statement and its file.

Statements on an open transaction take microseconds and wait for nobody, so they run in place, and so does a
COMMIT that only appends to the log: a thread or a greenlet for each would cost several times the statement.
Two things may wait, and neither blocks the event loop: BEGIN, for another process's transaction, is tried
again after a short sleep; what waits for the disk, a checkpoint and the first COMMIT behind it, runs in a
thread.

Connections stay open between transactions; one whose transaction did not end well is closed.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, CursorResult, Dialect, Engine, Executable, NullPool, create_engine
from sqlalchemy import Connection as SyncConnection
from sqlalchemy.exc import OperationalError

from kernel.errors import Code, TurnwrightError

T = TypeVar("T")

BUSY_S = 30.0
"""How many seconds a writer waits for another process's transaction."""

CHECKPOINT_COMMITS = 200
"""How many commits of one writer go to the log before it is copied into the file."""

_READERS = 4


class Sqlite:
    """A SQLite file. Its writers queue in order: SQLite's own waiting is a sleep that grows."""

    def __init__(self, url: URL) -> None:
        file = _File(str(url.database))
        self._reading = _Lanes(file, width=_READERS, writes=False)
        self._writing = _Lanes(file, width=1, writes=True)
        self._holder: asyncio.Task[Any] | None = None

    def read(self) -> AbstractAsyncContextManager[SqliteConnection]:
        """A transaction in which writing fails."""
        return self._reading.transaction()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[SqliteConnection]:
        """A transaction that holds the file's one write lock."""
        if self._holder is asyncio.current_task():
            raise RuntimeError("a write transaction inside a write transaction would wait for itself")
        async with self._writing.transaction() as conn:
            self._holder = asyncio.current_task()
            try:
                yield conn
            finally:
                self._holder = None

    async def close(self) -> None:
        """Close every connection; one in use when its transaction ends."""
        await self._reading.close()
        await self._writing.close()


class _Lanes:
    """As many transactions at once as there are lanes; the others wait in order."""

    def __init__(self, file: _File, *, width: int, writes: bool) -> None:
        self._engine = _engine(file.path)
        self._file = file
        self._writes = writes
        self._free = asyncio.Semaphore(width)
        self._idle: list[SqliteConnection] = []
        self._closed = False

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteConnection]:
        """A transaction that commits when its block ends, and rolls back when it raises."""
        async with self._free:
            conn = self._idle.pop() if self._idle else self._open()
            ended = False
            try:
                await conn.begin()
                yield conn
                await conn.commit()
                ended = True
            finally:
                if ended and not self._closed:
                    self._idle.append(conn)
                else:
                    await conn.close()

    async def close(self) -> None:
        """Close what is idle; what is in use closes when its transaction ends."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    def _open(self) -> SqliteConnection:
        self._file.require()
        return SqliteConnection(self._engine.connect(), self._file, writes=self._writes)


class _File:
    """The file as it was found first."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._found = self._stands()

    def require(self) -> None:
        """Refuse another file at that path, or none.

        SQLite would go on writing to a file that was removed, and all of it would be lost.
        """
        if self._stands() != self._found:
            raise TurnwrightError(
                Code.STORE_UNREACHABLE,
                "the database file was removed or replaced while it was open",
                where=self.path,
                accepted="the file in its place, and every process that had it open started anew",
            )

    def _stands(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino


class SqliteConnection:
    """A `store.connection.Connection` over SQLAlchemy's synchronous one."""

    def __init__(self, conn: SyncConnection, file: _File, *, writes: bool) -> None:
        self._conn = conn
        self._raw: sqlite3.Connection = conn.connection.driver_connection  # type: ignore[assignment]
        self._file = file
        self._disk = ThreadPoolExecutor(1, "store-commit") if writes else None
        self._syncing: asyncio.Future[None] | None = None
        self._commits = 0
        with _wrapped("PRAGMA"):
            for pragma in _PRAGMAS[writes]:
                self._raw.execute(f"PRAGMA {pragma}")

    @property
    def dialect(self) -> Dialect:
        """Which SQL it speaks."""
        return self._conn.dialect

    async def execute(
        self, statement: Executable, parameters: Any = None, /
    ) -> CursorResult[*tuple[Any, ...]]:
        """Run a statement; read its rows before the next one."""
        return self._conn.execute(statement, parameters)

    @asynccontextmanager
    async def begin_nested(self) -> AsyncIterator[None]:
        """A savepoint."""
        with self._conn.begin_nested():
            yield

    async def run_sync(self, work: Callable[[SyncConnection], T], /) -> T:
        """Run what knows only SQLAlchemy's synchronous connection."""
        return work(self._conn)

    async def begin(self) -> None:
        """Begin; a writer takes the file's write lock, or raises `database is locked` after the busy time.

        A deferred transaction that turns into a writer would fail at once when another has written since.

        Raises:
            TurnwrightError: `store.unreachable` when another file, or none, stands at the path now.
        """
        with _wrapped("BEGIN"):
            if self._disk is None:
                self._raw.execute("BEGIN")
            else:
                await self._begin_immediate()
        self._conn.begin()

    async def _begin_immediate(self) -> None:
        self._file.require()
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                self._raw.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            else:
                return
            await asyncio.sleep(random.uniform(0.0005, 0.003))

    async def commit(self) -> None:
        """Commit; a cancelled caller does not stop it half way."""
        if self._disk is not None:
            since_checkpoint = self._commits % CHECKPOINT_COMMITS
            self._commits += 1
            if since_checkpoint in (0, CHECKPOINT_COMMITS - 1):
                with _wrapped("COMMIT"):
                    await self._commit_and_sync(self._disk, checkpoint=since_checkpoint > 0)
        self._conn.commit()

    async def _commit_and_sync(self, disk: ThreadPoolExecutor, *, checkpoint: bool) -> None:
        """The writer waits for its checkpoint: under steady writes the log would never be emptied."""

        def run() -> None:
            self._raw.commit()
            if checkpoint:
                self._raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

        self._syncing = asyncio.get_running_loop().run_in_executor(disk, run)
        await asyncio.shield(self._syncing)

    async def close(self) -> None:
        """Roll back what no commit has taken, and close; a commit under way ends before."""
        if self._syncing is not None and not self._syncing.done():
            await asyncio.wait([self._syncing])
        if self._disk is not None:
            self._disk.shutdown()
        self._conn.close()


_SHARED = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY")
# Waiting inside SQLite would stop the event loop: a writer waits between its attempts to begin, and copies
# the log into the file in a thread.
_PRAGMAS = {
    True: (*_SHARED, "wal_autocheckpoint=0", "busy_timeout=0"),
    False: (*_SHARED, "query_only=ON"),
}


def _engine(path: str) -> Engine:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?mode=rw",  # it exists: nothing is made by opening
            uri=True,
            timeout=5.0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )

    # An error of the driver goes into logs and histories; the story does not.
    return create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)


@contextmanager
def _wrapped(statement: str) -> Iterator[None]:
    """Errors as SQLAlchemy's own statements raise them."""
    try:
        yield
    except sqlite3.Error as error:
        raise OperationalError(statement, None, error) from error
