"""Everything that a run of the benchmark needs, real and torn down at its end.

One Temporal server, one model server, and a worker process for each side, all of them idle unless it is
their turn.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from temporalio.client import Client

from bench import handwritten
from bench.handwritten import HandwrittenTurn, Turn
from bench.processes import Child, child
from bench.product import BULK, NOTES, Session, write_packages
from bench.sizes import Size, size_of
from client import grants
from link.connect import connect
from link.dev_server import start_dev_server
from link.settings import Settings, load_settings
from store import migrate
from store.engine import Store
from worker import READY_VARIABLE

_UNREACHABLE = "http://127.0.0.1:9/v1"


@dataclass
class Stage:
    """What the rows of the benchmark work with."""

    home: Path
    settings: Settings
    client: Client
    model_url: str
    worker: Child
    children: AsyncExitStack

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)

    async def session(self, *packages: str) -> Session:
        """An open session of the product."""
        return await Session.open(self.client, self.settings.temporal.queue, packages or (NOTES,))

    async def reference(self, text: str) -> str:
        """One turn of the reference, from its start to its result; returns the workflow's id."""
        turn_id = f"reference-{next(self._numbers):06}"
        await self.client.execute_workflow(
            HandwrittenTurn.run, Turn(turn_id=turn_id, text=text), id=turn_id, task_queue=handwritten.QUEUE
        )
        return turn_id

    async def reference_size(self, text: str) -> Size:
        """Events and bytes of one turn of the reference."""
        return await size_of(self.client, await self.reference(text))

    async def until_hanging(self) -> None:
        """Wait until the model has begun an answer that never ends."""
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
            await http.get(self.model_url.removesuffix("/v1") + "/started")

    async def succeed(self) -> Child:
        """Start one more worker, which serves from now on beside the former; returns the former."""
        former, name = self.worker, f"worker-{next(self._numbers)}"
        self.worker = await self.children.enter_async_context(_worker(self.settings, name))
        return former

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        """The product's database, as a reader of live text opens it."""
        store = await Store.open(self.settings.store_url)
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def stage(home: Path) -> AsyncIterator[Stage]:
    """Start everything, and stop it again whatever happens."""
    write_packages(home / "packages")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(await start_dev_server(home, ui=False, in_memory=True))
        model = await stack.enter_async_context(child(home, "model", "bench.model_server"))
        model_url = await model.line()
        settings = _settings(home, server.address, model_url)
        await migrate.upgrade(settings.store_url)
        await grants.approve(settings, str(home / "packages" / BULK), session_id=None, follow=False)
        worker = await stack.enter_async_context(_worker(settings, "worker"))
        ready = home / "handwritten.ready"
        other = await stack.enter_async_context(
            child(
                home,
                "handwritten",
                "bench.handwritten",
                **settings.to_env(),
                **{
                    handwritten.DATABASE: str(home / "handwritten.db"),
                    handwritten.MODEL_URL: model_url,
                    handwritten.READY: str(ready),
                },
            )
        )
        await other.until(ready)
        yield Stage(home, settings, await connect(settings), model_url, worker, stack)


def _settings(home: Path, address: str, model_url: str) -> Settings:
    """The production setting, but for the places."""
    settings = load_settings(
        {
            "TURNWRIGHT_HOME": str(home),
            "TURNWRIGHT_ADDRESS": address,
            "TURNWRIGHT_PACKAGES": str(home / "packages"),
        },
        cwd=home,
    )
    slot = {"base_url": model_url, "model": "scripted", "price_input": 1, "price_output": 2}
    slots = {"story": slot, "plugin": slot, "down": {**slot, "base_url": _UNREACHABLE}}
    return settings.model_copy(update={"slots": slots})


@asynccontextmanager
async def _worker(settings: Settings, name: str) -> AsyncIterator[Child]:
    ready = settings.home / f"{name}.ready"
    environ = {**settings.to_env(), READY_VARIABLE: str(ready), "TURNWRIGHT_LOG_LEVEL": "WARNING"}
    async with child(settings.home, name, "worker", **environ) as started:
        await started.until(ready)
        yield started
