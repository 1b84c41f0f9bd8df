"""Child processes of the benchmark: started, waited for, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
_STOP_S = 15.0


class Child:
    """A Python module as a process; its log is `home/<name>.log`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    async def line(self) -> str:
        """The next line of its standard output."""
        assert self._process.stdout is not None
        if found := (await self._process.stdout.readline()).decode().strip():
            return found
        raise RuntimeError(f"the process ended:\n{self.log()}")

    async def until(self, file: Path) -> None:
        """Wait until it has written a file; fails with its log when it ends instead."""
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(file.exists):
                if self._process.returncode is not None:
                    raise RuntimeError(f"the process ended:\n{self.log()}")
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """Ask it to end, then make it."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_S)
        except TimeoutError:
            await self.kill()

    async def terminate(self) -> None:
        """Ask it to end, as an orchestrator does, and wait until it has."""
        self._process.send_signal(signal.SIGTERM)
        await self._process.wait()

    async def kill(self) -> None:
        """End it as a crash does."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def log(self) -> str:
        """What it had to say."""
        return self._log.read_text(errors="replace")[-4000:]


@asynccontextmanager
async def child(home: Path, name: str, module: str, **environ: str) -> AsyncIterator[Child]:
    """Run `python -m <module>`. In a session of its own: Ctrl-C reaches us alone, and we clean up."""
    log = home / f"{name}.log"
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module),
            cwd=ROOT,
            env={**os.environ, **environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    started = Child(process, log)
    try:
        yield started
    finally:
        # A second Ctrl-C must not leave the process behind.
        try:
            await started.stop()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
