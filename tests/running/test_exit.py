"""F16: the SDK can abort the interpreter at exit; commands and workers leave with the status they mean."""

from __future__ import annotations

import asyncio
import json
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

COMMANDS = 25
WORKERS = 5
AT_ONCE = 2
UNKNOWN = 4
"""Status of a command that names what there is not."""


async def test_f16_commands_leave_with_the_status_they_mean(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        session = await r.session(packages=[])
        await session.until(lambda state: state["status"] == "active")
        good = [["session", "show", session.session_id, "--json"]] * COMMANDS
        bad = [["session", "show", "unknown", "--json"]] * COMMANDS
        statuses = await commands(r.settings, [*good, *bad])
    assert statuses == {0: COMMANDS, UNKNOWN: COMMANDS}


async def test_f16_workers_leave_with_the_status_they_mean(tmp_path: Path) -> None:
    """The first one is `turnwright worker --json`, whose log is JSON from its start to its end."""
    async with rig(tmp_path, start_worker=False) as r:

        async def one(number: int) -> int:
            name = f"worker-{number}"
            options = {} if number else {"MODULE": "client", "ARGUMENTS": "worker --json"}
            with worker_process(r.settings, tmp_path, name, **options) as process:
                await until_ready(process, tmp_path, name)
                process.send_signal(signal.SIGTERM)
                return await asyncio.to_thread(process.wait, 60)

        statuses = Counter(await _some_at_once([one(number) for number in range(WORKERS)]))
    assert statuses == {0: WORKERS}
    lines = [json.loads(line) for line in (tmp_path / "worker-0.log").read_text().splitlines()]
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
    ours = [line["message"] for line in lines if line["logger"] == "turnwright.worker"]
    assert ours[0].startswith("ready ")
    assert ours[-1] == "shutting down"


async def commands(settings: Settings, words: list[list[str]]) -> Counter[int]:
    """The statuses that commands end with."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.command_forks", str(AT_ONCE)),
        cwd=ROOT,
        env={**os.environ, **settings.to_env()},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    ended, _ = await process.communicate("\n".join(json.dumps(one) for one in words).encode())
    return Counter(int(status) for status in ended.split())


async def _some_at_once(work: list[Awaitable[int]]) -> list[int]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(what: Awaitable[int]) -> int:
        async with places:
            return await what

    return await asyncio.gather(*(one(what) for what in work))
