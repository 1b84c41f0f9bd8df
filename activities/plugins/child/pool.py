"""Which child process answers for which session: one per package digest and session, started when needed.

A process that only loaded its package has seen no session, and serves the first one that asks.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from activities.plugins.child.messages import Start, Started
from activities.plugins.child.process import Channel, Child
from activities.plugins.code import failed

MOST: Final = 24
"""How many processes a worker has at once; past it idle ones go, the longest unused first."""
IDLE_S: Final = 300.0
"""Seconds without an invocation after which a process is ended."""

_Key = tuple[str, str, str]
"""Package, digest and session; an empty session has not been given yet."""
_log = logging.getLogger(__name__)


class Children:
    """The child processes of one worker."""

    def __init__(self, *, most: int = MOST, idle_s: float = IDLE_S) -> None:
        self._most = most
        self._idle_s = idle_s
        self._children: dict[_Key, Child] = {}
        self._starting: dict[_Key, asyncio.Future[None]] = {}
        self._clocks: dict[_Key, asyncio.TimerHandle] = {}
        self._next: asyncio.Future[Child] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def load(self, start: Start) -> Started:
        """Load a package in a process without a session; says what it registered.

        Raises:
            TurnwrightError: what `Child.begin` raises.
        """
        return (await self._child((start.package, start.digest, ""), start)).started

    async def open(self, start: Start, session_id: str) -> Channel:
        """A channel to the package for one invocation of a session.

        Raises:
            TurnwrightError: what `Child.begin` raises.
        """
        key = (start.package, start.digest, session_id)
        self._adopt(key)
        return (await self._child(key, start)).open()

    def end(self, package: str, digest: str) -> None:
        """End every process of a digest; what it does fails."""
        for key in [key for key in self._children if key[:2] == (package, digest)]:
            self._let_go(key)

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        for key in list(self._children):
            self._let_go(key)
        if self._next:
            await _stopped(await self._next)
        await asyncio.gather(*self._ending)

    def _adopt(self, key: _Key) -> None:
        fresh = (*key[:2], "")
        if not self._lives(key) and self._lives(fresh):
            self._children[key] = self._children.pop(fresh)

    async def _child(self, key: _Key, start: Start) -> Child:
        """The process of a key, started once for all that wait for it."""
        while not self._lives(key):
            if key not in self._starting:
                self._starting[key] = asyncio.ensure_future(self._begin(key, start))
                self._starting[key].add_done_callback(lambda done: self._begun(key, done))
            await asyncio.shield(self._starting[key])
        self._watch(key)
        # In their order of use, for `_make_room`.
        child = self._children[key] = self._children.pop(key)
        return child

    async def _begin(self, key: _Key, start: Start) -> None:
        self._make_room()
        child = await self._fresh()
        await child.begin(start)
        if self._closed:
            await child.stop()
            raise failed(start.package, "the worker is stopping")
        self._children[key] = child

    async def _fresh(self) -> Child:
        """A process without a package; the next one is started already."""
        ready, self._next = self._next or asyncio.ensure_future(Child.spawn()), None
        child = await ready
        if self._next is None and not self._closed:
            self._next = asyncio.ensure_future(Child.spawn())
        return child if child.alive else await Child.spawn()

    def _begun(self, key: _Key, task: asyncio.Future[None]) -> None:
        self._starting.pop(key, None)
        if not task.cancelled():
            task.exception()  # who waited for it has it

    def _lives(self, key: _Key) -> bool:
        if (child := self._children.get(key)) is None:
            return False
        if not child.alive:
            self._let_go(key)
        return child.alive

    def _make_room(self) -> None:
        for key in [key for key, child in self._children.items() if not child.busy]:
            if len(self._children) < self._most:
                return
            self._let_go(key)

    def _watch(self, key: _Key) -> None:
        """Count the idle time anew."""
        if clock := self._clocks.pop(key, None):
            clock.cancel()
        self._clocks[key] = asyncio.get_running_loop().call_later(self._idle_s, self._expire, key)

    def _expire(self, key: _Key) -> None:
        child = self._children.get(key)
        if child is not None and child.busy:
            self._watch(key)
        elif child is not None:
            self._let_go(key)

    def _let_go(self, key: _Key) -> None:
        child = self._children.pop(key)
        if clock := self._clocks.pop(key, None):
            clock.cancel()
        task = asyncio.get_running_loop().create_task(_stopped(child))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def _stopped(child: Child) -> None:
    with suppress(ProcessLookupError):
        await child.stop()
