"""SQLite connections that stay open between transactions.

Checking a connection out of a pool and in again costs more than a small transaction does. A connection goes
back to its engine, which rolls back and cleans up, whenever a transaction did not end well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


class Lanes:
    """As many transactions at once as there are lanes; the others wait in order."""

    def __init__(self, engine: AsyncEngine, width: int) -> None:
        self._engine = engine
        self._free = asyncio.Semaphore(width)
        self._idle: list[AsyncConnection] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits when its block ends, and rolls back when it raises."""
        async with self._free:
            conn = self._idle.pop() if self._idle else await self._engine.connect()
            ended = False
            try:
                await conn.begin()
                yield conn
                await conn.commit()
                ended = True
            finally:
                if ended:
                    self._idle.append(conn)
                else:
                    await conn.__aexit__(None, None, None)  # closes it, also while being cancelled

    async def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            await self._idle.pop().close()
