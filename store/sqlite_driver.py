"""A SQLite connection for SQLAlchemy's asynchronous dialect that costs no thread switch per statement.

The usual driver sends each statement to a thread and back, eight times for a small transaction and about
2 ms. Statements on an open transaction take microseconds and wait for nobody, so they run in place, and so
does a COMMIT that only appends to the log. Two things may wait, and neither blocks the event loop: BEGIN, for
another process's transaction, is tried again after a short sleep; what waits for the disk, a checkpoint and
the first COMMIT behind it, runs in a thread.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from kernel.errors import Code, TurnwrightError

_LOCKED = sqlite3.SQLITE_BUSY

CHECKPOINT_COMMITS = 200
"""How many commits of one writer go to the log before it is copied into the file."""


class Cursor:
    """The cursor that the dialect expects; results are read at once."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._owner = connection
        self._cursor = connection.raw.cursor()

    async def __aenter__(self) -> Self:
        return self

    @property
    def description(self) -> Any:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    async def execute(self, sql: str, parameters: Any = ()) -> None:
        if sql == "BEGIN IMMEDIATE":
            await self._owner.begin_immediate()
        else:
            self._cursor.execute(sql, parameters)

    async def executemany(self, sql: str, parameters: Any) -> None:
        self._cursor.executemany(sql, parameters)

    async def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()

    async def close(self) -> None:
        self._cursor.close()


class Connection:
    """The connection that the dialect expects, over `sqlite3` of the standard library."""

    def __init__(self, raw: sqlite3.Connection, path: str, busy_s: float, writes: bool) -> None:
        self.raw = raw
        self._path = path
        self._file = _file_at(path)
        self._connection: sqlite3.Connection | None = raw
        self._busy_s = busy_s
        self._disk = ThreadPoolExecutor(1, "store-commit") if writes else None
        self._syncing: asyncio.Future[None] | None = None
        self._commits = 0

    @property
    def isolation_level(self) -> str | None:
        return self.raw.isolation_level

    def cursor(self) -> Cursor:
        """A new cursor."""
        return Cursor(self)

    async def begin_immediate(self) -> None:
        """Take the file's write lock, or raise `database is locked` after the busy time.

        Raises:
            TurnwrightError: `store.unreachable` when another file, or none, stands at the path now.
        """
        self._require_file()
        deadline = time.monotonic() + self._busy_s
        while True:
            try:
                self.raw.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != _LOCKED or time.monotonic() > deadline:
                    raise
            else:
                return
            await asyncio.sleep(random.uniform(0.0005, 0.003))

    def _require_file(self) -> None:
        """SQLite would go on writing to a file that was removed, and all of it would be lost."""
        if _file_at(self._path) != self._file:
            raise TurnwrightError(
                Code.STORE_UNREACHABLE,
                "the database file was removed or replaced while it was open",
                where=self._path,
                accepted="the file in its place, and every process that had it open started anew",
            )

    async def commit(self) -> None:
        """Commit; a cancelled caller does not stop it half way."""
        if self._disk is not None and self.raw.in_transaction:
            since_checkpoint = self._commits % CHECKPOINT_COMMITS
            self._commits += 1
            if since_checkpoint in (0, CHECKPOINT_COMMITS - 1):
                await self._commit_and_sync(self._disk, checkpoint=since_checkpoint > 0)
                return
        self.raw.commit()

    async def _commit_and_sync(self, disk: ThreadPoolExecutor, *, checkpoint: bool) -> None:
        """The writer waits for its checkpoint: under steady writes the log would never be emptied."""

        def run() -> None:
            self.raw.commit()
            if checkpoint:
                self.raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

        self._syncing = asyncio.get_running_loop().run_in_executor(disk, run)
        await asyncio.shield(self._syncing)

    async def rollback(self) -> None:
        """Roll back what no commit has taken yet."""
        if self._syncing is not None and not self._syncing.done():
            await asyncio.wait([self._syncing])
        self.raw.rollback()

    async def create_function(self, *arguments: Any, **options: Any) -> None:
        """Register a function: the dialect's own, for regular expressions."""
        self.raw.create_function(*arguments, **options)

    async def close(self) -> None:
        """Close after a commit under way."""
        self.stop()

    def stop(self) -> None:
        """Close without waiting for an event loop."""
        if self._disk is not None:
            self._disk.shutdown()
        self._connection = None
        self.raw.close()


async def connect(path: str, *, busy_s: float, writes: bool, **_ignored: Any) -> Connection:
    """Open the file, which exists. Transactions are begun explicitly."""
    raw = sqlite3.connect(
        _existing(path),
        uri=True,
        timeout=5.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )
    return Connection(raw, path, busy_s, writes)


def _existing(path: str) -> str:
    return f"{Path(path).absolute().as_uri()}?mode=rw"


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
