"""The in-process transport: both ends in one event loop, and JSON text between them.

Text, not objects, even here: package code can change nothing of ours by changing what it was given, and a
child process behaves the same (DECISIONS 24).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from activities.plugins.code import PackageCode
from activities.plugins.guest import serve


class Transport(Protocol):
    """Carries messages to a package's code and back, as the host sees it."""

    async def receive(self) -> str | None:
        """The next message of the code, or None once it can send no more."""

    def send(self, text: str) -> None:
        """Pass a message on; after the end it goes nowhere."""

    async def close(self, grace_s: float) -> None:
        """Wait at most `grace_s` seconds for the code's end, then give it up."""


class InProcess:
    """A `Transport` to code in this process. It starts when it is made."""

    def __init__(self, code: PackageCode) -> None:
        self._to_code: asyncio.Queue[str] = asyncio.Queue()
        self._to_host: asyncio.Queue[str | None] = asyncio.Queue()
        self._closed = False
        self._task = asyncio.create_task(serve(code, self._to_code.get, self._from_code))
        self._task.add_done_callback(self._ended)

    async def receive(self) -> str | None:
        """See `Transport`."""
        return await self._to_host.get()

    def send(self, text: str) -> None:
        """See `Transport`."""
        if not self._closed:
            self._to_code.put_nowait(text)

    async def close(self, grace_s: float) -> None:
        """See `Transport`. Code that ignores its cancellation is left behind, cut off from the host."""
        await asyncio.wait([self._task], timeout=grace_s)
        self._closed = True
        if not self._task.done():
            self._task.cancel()

    def _from_code(self, text: str) -> None:
        if not self._closed:
            self._to_host.put_nowait(text)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # else asyncio reports it as never retrieved
        self._to_host.put_nowait(None)
