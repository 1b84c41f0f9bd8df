"""Tells waiting readers that something was written, within a process and, on PostgreSQL, across them."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import suppress
from typing import Any

from sqlalchemy import URL, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from store import address
from store.connection import Connection

CHANNEL = "turnwright_stream"
_log = logging.getLogger(__name__)


class Wakes:
    """Waiting readers by key. A wake may be lost: whoever waits also polls, slowly.

    Args:
        url: PostgreSQL database to listen on; None when there is no listening.
    """

    def __init__(self, url: URL | None) -> None:
        self._url = url
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._listening: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()

    def wake(self, key: str) -> None:
        """Wake this process's readers of a key."""
        for event in self._waiting.get(key, ()):
            event.set()

    def subscribe(self, key: str) -> asyncio.Event:
        """An event that is set at every wake of the key, until `unsubscribe`."""
        event = asyncio.Event()
        self._waiting[key].add(event)
        if self._url is not None and (self._listening is None or self._listening.done()):
            self._listening = asyncio.create_task(self._listen(self._url))
        return event

    def unsubscribe(self, key: str, event: asyncio.Event) -> None:
        """Forget a subscription."""
        self._waiting[key].discard(event)
        if not self._waiting[key]:
            del self._waiting[key]

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
            self._listening = None

    async def _listen(self, url: URL) -> None:
        """Hold one connection that listens; after a failure the next subscription starts another."""
        self._lost.clear()
        engine = create_async_engine(
            address.driver_url(url), poolclass=NullPool, connect_args=address.connect_arguments(url)
        )
        try:
            async with engine.connect() as conn:
                raw = await conn.get_raw_connection()
                driver: Any = raw.driver_connection
                driver.add_termination_listener(lambda _: self._lost.set())
                await driver.add_listener(CHANNEL, lambda _c, _pid, _channel, key: self.wake(key))
                # Whatever was written before LISTEN took hold went unheard.
                for key in list(self._waiting):
                    self.wake(key)
                await self._lost.wait()
        except Exception as error:
            # Only speed is lost; the driver's own exceptions have no common base with SQLAlchemy's.
            _log.warning("not listening for live text, readers poll: %s", error)
        finally:
            await engine.dispose()


async def notify(conn: Connection, key: str) -> None:
    """Wake the readers of a key in every process once this transaction commits."""
    if conn.dialect.name == "postgresql":
        await conn.execute(text("SELECT pg_notify(:channel, :key)"), {"channel": CHANNEL, "key": key})
