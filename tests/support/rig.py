"""A whole Turnwright for one test: real server, real store, real HTTP, a worker of its own queue.

    async with rig(tmp_path, packages={...}, model=ModelServer([...])) as r:
        session = await r.session()
        result = await session.play("I open the door.")

The worker runs in this process with the workflow sandbox on; `worker_process` runs one as a process.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Interceptor

import worker
from kernel.wire import names
from kernel.wire.ids import session_workflow, turn_workflow
from link.settings import Settings
from store import migrate
from store.engine import Store
from tests.support.model_server import ModelServer
from tests.support.temporal import link_settings

ROOT = Path(__file__).parents[2]
_WORKER = "tests.support.trusting_worker"
Files = Mapping[str, str]
"""Files of one package by path from its root."""


@dataclass
class Rig:
    """What a test drives. `store` reads what was committed; `client` is a plain Temporal client of ours."""

    settings: Settings
    client: Client
    store: Store
    model: ModelServer
    home: Path
    workers: list[Any] = field(default_factory=list)
    parts: worker.Parts | None = None

    @asynccontextmanager
    async def polling(self, *interceptors: Interceptor) -> AsyncIterator[None]:
        """Poll in this process while the body runs; for a rig that was made without a worker."""
        assert self.parts is not None
        async with AsyncExitStack() as stack:
            for one in worker.build_workers(self.parts, interceptors):
                await stack.enter_async_context(one)
            yield

    async def session(
        self, session_id: str | None = None, packages: list[str] | None = None, **more: Any
    ) -> SessionDriver:
        """Start a session and wait until it has loaded itself."""
        session_id = session_id or f"s-{uuid.uuid4().hex[:8]}"
        start = {"session_id": session_id, **({"packages": packages} if packages is not None else {}), **more}
        handle = await self.client.start_workflow(
            names.SESSION, start, id=session_workflow(session_id), task_queue=self.settings.temporal.queue
        )
        return SessionDriver(self, session_id, handle)


@dataclass
class SessionDriver:
    """Speaks to one session in plain JSON."""

    rig: Rig
    session_id: str
    handle: WorkflowHandle[Any, Any]

    async def submit(self, text: str, action_id: str | None = None, **more: Any) -> dict[str, Any]:
        """The `submit` update's receipt."""
        message = {"action_id": action_id or uuid.uuid4().hex[:8], "text": text, **more}
        return await self.update(names.SUBMIT, message)

    async def update(self, name: str, message: Any) -> dict[str, Any]:
        """Any update's answer."""
        answer: dict[str, Any] = await self.handle.execute_update(name, message)
        return answer

    async def state(self) -> dict[str, Any]:
        """The `state` query's answer."""
        answer: dict[str, Any] = await self.handle.query(names.STATE)
        return answer

    async def play(self, text: str, action_id: str | None = None, timeout_s: float = 30.0) -> dict[str, Any]:
        """Submit, and wait for the turn's result."""
        return await self.result(await self.submit(text, action_id), timeout_s)

    async def result(self, receipt: Mapping[str, Any], timeout_s: float = 30.0) -> dict[str, Any]:
        """The result of the receipt's turn; the turn may not exist for a moment."""
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    return await self.turn(receipt["turn_id"]).result()  # type: ignore[no-any-return]
                except RPCError as error:
                    if error.status != RPCStatusCode.NOT_FOUND:
                        raise
                await asyncio.sleep(0.02)

    def turn(self, turn_id: str) -> WorkflowHandle[Any, Any]:
        """A handle on a turn of this session."""
        return self.rig.client.get_workflow_handle(turn_workflow(self.session_id, turn_id))

    async def until(self, found: Any, timeout_s: float = 20.0) -> dict[str, Any]:
        """Ask `state` until `found(state)` is true; returns that state."""
        async with asyncio.timeout(timeout_s):
            while not found(state := await self.state()):
                await asyncio.sleep(0.02)
        return state


@asynccontextmanager
async def rig(
    tmp_path: Path,
    *,
    packages: Mapping[str, Files] | None = None,
    model: ModelServer | None = None,
    url: str | None = None,
    start_worker: bool = True,
    interceptors: tuple[Interceptor, ...] = (),
    api_key_env: str = "",
    community: bool = False,
    **environ: str,
) -> AsyncIterator[Rig]:
    """Everything a turn needs, torn down at the end.

    Args:
        packages: package folders to write, by id.
        model: scripted model server behind the slots `story` and `plugin`; an empty one by default.
        url: a migrated database; a SQLite file of its own by default.
        start_worker: whether to poll in this process.
        api_key_env: the variable that holds the key of both slots.
        community: whether the packages are what they are to everybody else: code that somebody has to
            approve, and that runs in child processes. Else they are trusted, as bundled ones are.
        environ: further settings, `TURNWRIGHT_…`.
    """
    folder = tmp_path / "packages"
    write_packages(folder, packages or {})
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(model or ModelServer())
        settings = rig_settings(tmp_path, model.url, url, folder, api_key_env, **environ)
        if url is None:
            await migrate.upgrade(settings.store_url)
        parts = await worker.assemble(settings, stack, () if community else [folder])
        built = Rig(settings, parts.client, parts.store, model, tmp_path, parts=parts)
        if start_worker:
            for one in worker.build_workers(parts, interceptors):
                built.workers.append(await stack.enter_async_context(one))
        yield built


def rig_settings(
    home: Path, model_url: str, url: str | None, packages: Path, api_key_env: str = "", **environ: str
) -> Settings:
    """Settings with two free slots on the scripted model server, and the sandbox on."""
    settings = link_settings(home, TURNWRIGHT_PACKAGES=str(packages), **environ)
    slot = {"base_url": model_url, "model": "scripted", "price_input": 1, "price_output": 2}
    slot |= {"api_key_env": api_key_env}
    update: dict[str, Any] = {"slots": {"story": slot, "plugin": slot}}
    if url is not None:
        update["store"] = settings.store.model_copy(update={"url": url})
    update["worker"] = settings.worker.model_copy(update={"sandbox": True})
    return settings.model_copy(update=update)


def write_packages(folder: Path, packages: Mapping[str, Files]) -> None:
    """Write package folders."""
    folder.mkdir(parents=True, exist_ok=True)
    for package_id, files in packages.items():
        for path, text in files.items():
            file = folder / package_id / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


@contextmanager
def worker_process(
    settings: Settings, home: Path, name: str = "worker", **environ: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as a process of its own; killed at the end if it still runs. Its log is `home/<name>.log`."""
    ready = home / f"{name}.ready"
    ready.unlink(missing_ok=True)
    with (home / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", environ.pop("MODULE", _WORKER), *environ.pop("ARGUMENTS", "").split()],
            cwd=ROOT,
            env={**os.environ, **settings.to_env(), worker.READY_VARIABLE: str(ready), **environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


async def until_ready(process: subprocess.Popen[bytes], home: Path, name: str = "worker") -> None:
    """Wait until a worker process polls; fails with its log when it ends instead."""
    async with asyncio.timeout(60):
        while not (home / f"{name}.ready").exists():
            if process.poll() is not None:
                raise AssertionError((home / f"{name}.log").read_text())
            await asyncio.sleep(0.05)
