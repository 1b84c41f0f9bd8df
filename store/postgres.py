"""PostgreSQL through asyncpg."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from store import address

_POOL = 8


class Postgres:
    """A PostgreSQL database."""

    def __init__(self, url: URL) -> None:
        self._writer = create_async_engine(
            address.driver_url(url),
            isolation_level="READ COMMITTED",
            pool_size=_POOL,
            max_overflow=0,
            hide_parameters=True,
            pool_recycle=1800,
            pool_pre_ping=True,
            connect_args=address.connect_arguments(url),
        )
        self._reader = self._writer.execution_options(postgresql_readonly=True)

    def read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction in which writing fails."""
        return self._reader.begin()

    def write(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction that commits when the block ends, and rolls back when it raises."""
        return self._writer.begin()

    async def close(self) -> None:
        """Close every connection."""
        await self._writer.dispose()
