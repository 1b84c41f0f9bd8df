"""The one open transaction that every function of the store works in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection as SyncConnection
from sqlalchemy import CursorResult, Dialect, Executable

T = TypeVar("T")


class Connection(Protocol):
    """A connection inside a transaction: SQLAlchemy's asynchronous one on PostgreSQL, ours on SQLite."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL it speaks."""

    async def execute(
        self, statement: Executable, parameters: Any = None, /
    ) -> CursorResult[*tuple[Any, ...]]:
        """Run a statement; read its rows before the next one."""

    def begin_nested(self) -> AbstractAsyncContextManager[Any]:
        """A savepoint: what its block wrote is undone when the block raises, the rest stays."""

    async def run_sync(self, work: Callable[[SyncConnection], T], /) -> T:
        """Run what knows only SQLAlchemy's synchronous connection."""
