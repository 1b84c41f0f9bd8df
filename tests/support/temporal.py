"""Temporal servers for tests: one development server for the whole run, and a time-skipping one.

    shared_dev_server()           address of the server that all processes of this test run share
    link_settings(home, …)        settings that point to it
    unique_queue()                a task queue of one test's own
    time_skipping_environment()   for long timers; it loses updates, so not for those

The shared server belongs to a keeper process. Every test process holds a shared file lock while it
lives; when the keeper gets the lock for itself, nobody is left, and server and keeper end. A crashed
test process lets go of its lock as well, so nothing stays behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any

from temporalio.testing import WorkflowEnvironment

from link.dev_server import start_dev_server
from link.runtime import shared_runtime
from link.settings import Settings, load_settings

_START_S = 60.0
_held: list[IO[str]] = []


@functools.cache
def shared_dev_server() -> str:
    """The address of an in-memory, headless server with our attributes; started when first asked for."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"process-{os.getpid()}"
    folder = Path(tempfile.gettempdir()) / f"turnwright-tests-{os.getuid()}" / run
    _held.append(_join(folder))
    with (folder / "start.lock").open("w") as start:
        fcntl.flock(start, fcntl.LOCK_EX)
        if not (folder / "address").exists():
            _start_keeper(folder)
    return (folder / "address").read_text()


def link_settings(home: Path, **environ: str) -> Settings:
    """Settings for the shared server, a queue of their own, and `environ` over them."""
    base = {"TURNWRIGHT_HOME": str(home), "TURNWRIGHT_ADDRESS": shared_dev_server()}
    return load_settings({**base, "TURNWRIGHT_QUEUE": unique_queue(), **environ}, cwd=home)


def unique_queue(prefix: str = "test") -> str:
    """A task queue name that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


@contextlib.asynccontextmanager
async def time_skipping_environment(**options: Any) -> AsyncIterator[WorkflowEnvironment]:
    """A server whose clock jumps to the next timer while nothing runs.

    Args:
        options: as `WorkflowEnvironment.start_time_skipping` takes them.
    """
    path = str(Path(sys.executable).with_name("temporal-test-server"))
    options.setdefault("runtime", shared_runtime())
    start = WorkflowEnvironment.start_time_skipping(test_server_existing_path=path, **options)
    async with await start as environment:
        yield environment


def _join(folder: Path) -> IO[str]:
    """Hold the lock that keeps the keeper; again when the keeper was just leaving with the folder."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            users = (folder / "users.lock").open("a")
            fcntl.flock(users, fcntl.LOCK_SH)
            if os.fstat(users.fileno()).st_nlink:
                return users
            users.close()


def _start_keeper(folder: Path) -> None:
    with (folder / "keeper.log").open("w") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.support.temporal", str(folder)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_S
    while not (folder / "address").exists():
        if keeper.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"no development server:\n{(folder / 'keeper.log').read_text()}")
        time.sleep(0.02)


async def _keep(folder: Path) -> None:
    async with await start_dev_server(folder, ui=False, in_memory=True) as server:
        (folder / "address.new").write_text(server.address)
        (folder / "address.new").rename(folder / "address")
        await asyncio.to_thread(_until_alone, folder)


def _until_alone(folder: Path) -> None:
    with (folder / "users.lock").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    asyncio.run(_keep(Path(sys.argv[1])))
