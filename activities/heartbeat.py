"""Heartbeats of everything long: a dead worker is noticed, a stop is heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

INTERVAL_S = 0.4
"""Well inside the heartbeat time-out of 5 s; the worker throttles what it sends to 0.5 s."""


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Beat in the background while the body runs; cancellation reaches the body as usual.

    The server counts from the start of the activity, so the first beat may wait: a short activity costs none.
    A local activity has no heartbeat: its workflow task stands for it.
    """
    if activity.info().is_local:
        yield
        return
    task = asyncio.create_task(_beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat() -> None:
    while True:
        await asyncio.sleep(INTERVAL_S)
        activity.heartbeat()
