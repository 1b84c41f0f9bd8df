"""Starts worker processes quickly: one process imports everything once, and forks a worker on demand.

    async with WorkerForks(home) as forks:
        one = await forks.start(settings, "one")        # polls now; its log is `home/one.log`
        await one.died                                  # its exit status, negative for a signal

The parent is single-threaded when it forks: nothing of the SDK has started there. When its input ends, it
kills what still runs and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import worker
from link.settings import Settings

ROOT = Path(__file__).parents[2]
START_S = 60.0


@dataclass(frozen=True)
class Fork:
    """A worker process. `died` is its exit status once it is gone."""

    name: str
    pid: int
    log: Path
    died: asyncio.Future[int]

    def send(self, number: signal.Signals) -> None:
        """Send a signal; a process that is gone already does not mind."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.send(signal.SIGKILL)
        await self.died


class WorkerForks:
    """The parent process, seen from a test."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._forks: dict[str, Fork] = {}
        self._started: dict[str, asyncio.Future[Fork]] = {}

    async def __aenter__(self) -> WorkerForks:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.crash_worker", "--forks"),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        self._reader.cancel()

    async def start(self, settings: Settings, name: str, **environ: str) -> Fork:
        """Fork a worker, and wait until it polls."""
        assert self._process.stdin is not None
        ready, log = self._home / f"{name}.ready", self._home / f"{name}.log"
        environ |= {**settings.to_env(), worker.READY_VARIABLE: str(ready)}
        self._started[name] = asyncio.get_running_loop().create_future()
        order = {"name": name, "log": str(log), "environ": environ}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        fork = await self._started[name]
        async with asyncio.timeout(START_S):
            while not ready.exists():
                if fork.died.done():
                    raise AssertionError(log.read_text())
                await asyncio.sleep(0.02)
        return fork

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            told = json.loads(line)
            if "pid" in told:
                died = asyncio.get_running_loop().create_future()
                fork = Fork(told["name"], told["pid"], self._home / f"{told['name']}.log", died)
                self._forks[fork.name] = fork
                self._started[fork.name].set_result(fork)
            else:
                self._forks[told["name"]].died.set_result(told["status"])


def serve(work: Callable[[], None]) -> None:
    """The parent's loop: fork for every line that comes in, tell of every child that ends."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    children: dict[int, str] = {}
    pending = b""
    while True:
        ready, _, _ = select.select([0, wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _reap(children)
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                order = json.loads(line)
                pid = _fork(order, work)
                children[pid] = order["name"]
                _tell(name=order["name"], pid=pid)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _fork(order: dict[str, Any], work: Callable[[], None]) -> int:
    if pid := os.fork():
        return pid
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(order["environ"])
    try:
        work()
    except BaseException:
        traceback.print_exc()
    os._exit(70)


def _reap(children: dict[int, str]) -> None:
    for pid in list(children):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            _tell(name=children.pop(pid), status=os.waitstatus_to_exitcode(status))


def _tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)
