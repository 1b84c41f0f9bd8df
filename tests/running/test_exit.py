"""F16: the SDK can abort the interpreter at exit; commands and workers leave with the status they mean."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path

import pytest

from link.settings import Settings
from tests.support.rig import ROOT, rig, until_ready, worker_process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COMMANDS = 8
WORKERS = 5
AT_ONCE = 2
UNKNOWN = 4
"""Status of a command that names what there is not."""


async def test_f16_commands_leave_with_the_status_they_mean(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        session = await r.session(packages=[])
        await session.until(lambda state: state["status"] == "active")
        good = [command(r.settings, "session", "show", session.session_id, "--json") for _ in range(COMMANDS)]
        bad = [command(r.settings, "session", "show", "unknown", "--json") for _ in range(COMMANDS)]
        found = Counter(await _some_at_once(good))
        refused = Counter(await _some_at_once(bad))
    assert found == {0: COMMANDS}
    assert refused == {UNKNOWN: COMMANDS}


async def test_f16_workers_leave_with_the_status_they_mean(tmp_path: Path) -> None:
    async with rig(tmp_path, start_worker=False) as r:

        async def one(number: int) -> int:
            name = f"worker-{number}"
            with worker_process(r.settings, tmp_path, name) as process:
                await until_ready(process, tmp_path, name)
                process.send_signal(signal.SIGTERM)
                return await asyncio.to_thread(process.wait, 60)

        statuses = Counter(await _some_at_once([one(number) for number in range(WORKERS)]))
    assert statuses == {0: WORKERS}


async def command(settings: Settings, *arguments: str) -> int:
    """The status that a command ends with."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "client",
        *arguments,
        cwd=ROOT,
        env={**os.environ, **settings.to_env()},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    return await process.wait()


async def _some_at_once(work: list[Awaitable[int]]) -> list[int]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(what: Awaitable[int]) -> int:
        async with places:
            return await what

    return await asyncio.gather(*(one(what) for what in work))
