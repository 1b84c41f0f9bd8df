"""Child processes of a command: started in a group of their own, awaited until ready, gone with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kernel.errors import Code, TurnwrightError
from link.child_log import ChildLog
from link.following import following
from link.settings import Settings

READY_VARIABLE: Final = "TURNWRIGHT_WORKER_READY_FILE"
"""Names the file that a worker writes once it polls."""

START_S: Final = 60.0
STOP_S: Final = 10.0
ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder that the rooms are imported from."""

_LOG_LINES: Final = 15
_POLL_S: Final = 0.02


class ChildProcess:
    """A child that runs; leave its block, or `close` it, and it is gone with all that it started.

    Attributes:
        name: what it is, for messages.
        log: where its stdout and stderr go.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: ChildLog) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id, which is its process group's too."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until it ends."""
        return await self._process.wait()

    async def broken(self) -> TurnwrightError:
        """Wait until it ends by itself; returns what to tell."""
        return self.failed(f"ended by itself with status {await self.wait()}")

    async def close(self) -> None:
        """Ask it to end, then make it; closing twice is harmless."""
        if self._process.returncode is None:
            _signal(self.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOP_S)
        _signal(self.pid, signal.SIGKILL)  # also whatever it left behind in its group
        await self._process.wait()

    def failed(self, what: str) -> TurnwrightError:
        """The refusal when it does not do what it was started for."""
        last = self.log.tail(_LOG_LINES)
        return TurnwrightError(
            Code.WORKER_START_FAILED,
            f"the {self.name} {what}\n{last}".rstrip(),
            where=str(self.log.file),
            details={"log": last},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def start_worker(settings: Settings) -> ChildProcess:
    """Start a worker with exactly these settings and wait until it polls.

    Raises:
        TurnwrightError: `worker.start-failed` with the last lines of its log.
    """
    ready = settings.home / f"worker-{os.getpid()}.ready"
    ready.unlink(missing_ok=True)
    worker = await _start(
        "worker",
        worker_command(),
        log_file=settings.home / "worker.log",
        environ={**worker_environment(settings), READY_VARIABLE: str(ready)},
    )
    try:
        await _until(worker, ready.exists)
    finally:
        ready.unlink(missing_ok=True)
    return worker


async def start_offline_model(home: Path) -> tuple[ChildProcess, str]:
    """Start the offline model; returns it and its base URL.

    Raises:
        TurnwrightError: `worker.start-failed` with the last lines of its log.
    """
    command = [sys.executable, "-P", "-m", "activities.models.offline", "--port", "0"]
    model = await _start(
        "offline model", command, log_file=home / "model.log", environ=_importing(os.environ)
    )
    await _until(model, lambda: _url(model.log) is not None)
    url = _url(model.log)
    assert url is not None
    return model, url


async def start_detached(
    arguments: Sequence[str], *, log_file: Path, environ: Mapping[str, str]
) -> ChildProcess:
    """Start a command of ours that outlives this process; whoever started it may still close it."""
    command = [sys.executable, "-P", "-m", "client", *arguments]
    return await _start("background process", command, log_file=log_file, environ=environ, follow=False)


def worker_command() -> list[str]:
    """The command line of a worker. `-P`: a `worker.py` in the current folder is not ours."""
    return [sys.executable, "-P", "-m", "worker"]


def worker_environment(settings: Settings) -> dict[str, str]:
    """This process's environment, with the settings in it."""
    return {**_importing(os.environ), **settings.to_env()}


async def _start(
    name: str, command: Sequence[str], *, log_file: Path, environ: Mapping[str, str], follow: bool = True
) -> ChildProcess:
    log = ChildLog(log_file)
    with log.open() as out:
        process = await asyncio.create_subprocess_exec(
            *(following(command) if follow else command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=dict(environ),
            start_new_session=True,
        )
    return ChildProcess(name, process, log)


async def _until(child: ChildProcess, ready: Callable[[], bool]) -> None:
    try:
        async with asyncio.timeout(START_S):
            while not ready():
                if child.status is not None:
                    raise child.failed(f"ended with status {child.status} before it was ready")
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        await child.close()
        raise child.failed(f"was not ready within {START_S:g} s") from None
    except BaseException:
        await child.close()
        raise


def _importing(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a child imports the same rooms, whatever folder it starts in."""
    paths = [str(ROOT), *environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path for path in paths if path))}


def _url(log: ChildLog) -> str | None:
    whole = log.text().rpartition("\n")[0].splitlines()
    return next((line.strip() for line in whole if line.startswith("http")), None)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
