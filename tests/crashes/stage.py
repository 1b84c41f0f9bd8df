"""Pairs of worker processes on queues of their own, which many sessions use one after another."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from kernel.wire import names
from kernel.wire.ids import session_workflow
from link.settings import Settings
from tests.support.model_server import ModelServer
from tests.support.rig import Files, Rig, SessionDriver, rig
from tests.support.temporal import unique_queue
from tests.support.worker_forks import Fork, WorkerForks

TASK_TIMEOUT = timedelta(seconds=3)
_numbers = itertools.count(1)


@dataclass
class Pair:
    """Two workers on one queue. Whichever dies is replaced."""

    rig: Rig
    forks: WorkerForks
    settings: Settings
    workers: list[Fork] = field(default_factory=list)

    async def fill(self) -> None:
        """Start workers until two of them poll."""
        self.workers = [one for one in self.workers if not one.died.done()]
        while len(self.workers) < 2:
            self.workers.append(await self.start())

    async def start(self) -> Fork:
        """One more worker on this queue."""
        return await self.forks.start(self.settings, f"worker-{next(_numbers)}")

    async def death(self) -> Fork:
        """Wait until one of the two is gone."""
        await asyncio.wait([one.died for one in self.workers], return_when=asyncio.FIRST_COMPLETED)
        return next(one for one in self.workers if one.died.done())

    async def session(self, packages: list[str], session_id: str | None = None) -> SessionDriver:
        """Start a session on this queue, with the time-out of workflow tasks that our client gives."""
        session_id = session_id or f"s-{uuid.uuid4().hex[:8]}"
        handle = await self.rig.client.start_workflow(
            names.SESSION,
            {"session_id": session_id, "packages": packages},
            id=session_workflow(session_id),
            task_queue=self.settings.temporal.queue,
            task_timeout=TASK_TIMEOUT,
        )
        return SessionDriver(self.rig, session_id, handle)


@dataclass
class Stage:
    """A rig without a worker of its own, and the means to start pairs of them."""

    rig: Rig
    forks: WorkerForks

    async def pair(self, *, full: bool = True) -> Pair:
        """A new queue, with two workers."""
        temporal = self.rig.settings.temporal.model_copy(update={"queue": unique_queue("crash")})
        pair = Pair(self.rig, self.forks, self.rig.settings.model_copy(update={"temporal": temporal}))
        if full:
            await pair.fill()
        return pair


@asynccontextmanager
async def stage(
    home: Path, *, packages: dict[str, Files], model: ModelServer, url: str | None = None, **environ: str
) -> AsyncIterator[Stage]:
    """Everything that workers need, and nobody who works yet."""
    async with AsyncExitStack() as stack:
        r = await stack.enter_async_context(
            rig(home, packages=packages, model=model, url=url, start_worker=False, **environ)
        )
        yield Stage(r, await stack.enter_async_context(WorkerForks(home)))


async def usage_of_nodes(session: SessionDriver, turn_id: str) -> int:
    """Model calls that the nodes of a turn say they made."""
    graph: dict[str, Any] = await session.turn(turn_id).query(names.GRAPH)
    return sum(node.get("usage", {}).get("calls", 0) for node in graph["nodes"])


async def until(found: Callable[[], object], timeout_s: float = 30.0) -> None:
    """Look until `found()` is true: for what a process leaves in a file."""
    async with asyncio.timeout(timeout_s):
        while not found():
            await asyncio.sleep(0.01)


def lanes() -> int:
    """How many pairs play at once: more only wait for each other."""
    return 2 * (os.cpu_count() or 2)
