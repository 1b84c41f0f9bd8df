"""Everything a person needs to play on one machine: server, store, model and worker, started together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from os import getpid
from typing import Any, Final

from client import running
from client.processes import ChildProcess, start_offline_model, start_worker
from kernel.errors import Code, TurnwrightError
from link.dev_server import DevServer, start_dev_server
from link.settings import DeploymentSettings, Settings, TemporalSettings
from store import migrate

SLOTS: Final = ("story", "plugin")
"""Model slots that packages use unless they name another."""

PRICE_INPUT: Final = "0.25"
PRICE_OUTPUT: Final = "1.00"
"""US dollars per million tokens that the offline model pretends to cost, so that sums can be seen."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Stack:
    """What runs.

    Attributes:
        settings: with them a client reaches it, and the worker runs.
        model: the offline model, or None where slots are configured.
    """

    settings: Settings
    server: DevServer
    worker: ChildProcess
    model: ChildProcess | None
    note: running.Running

    async def broken(self) -> TurnwrightError:
        """Wait until a part ends that should not; returns what to tell."""
        parts = (self.server, self.worker, self.model)
        waits = [asyncio.ensure_future(part.broken()) for part in parts if part]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return done.pop().result()


@asynccontextmanager
async def start(
    settings: Settings, *, offline: bool, port: int | None = None, say: Say = lambda _: None
) -> AsyncIterator[Stack]:
    """Start all parts, and stop them when the block ends, however it ends.

    Args:
        offline: play against the offline model, whatever slots are configured.
        port: of the Temporal server; a free one when left out.
        say: hears what is done, line by line.

    Raises:
        TurnwrightError: `server.start-failed`, `worker.start-failed`, `store.*`.
    """
    async with AsyncExitStack() as parts:
        server = await parts.enter_async_context(await start_dev_server(settings.home, port=port))
        say(f"Temporal server  {server.address}, web interface {server.ui_url}")
        revision = await migrate.upgrade(settings.store_url)
        say(f"store            {settings.store_url}, schema revision {revision}")
        model, url = None, None
        if offline:
            model, url = await start_offline_model(settings.home)
            await parts.enter_async_context(model)
            say(f"offline model    {url}")
        local = local_settings(settings, server.address, url)
        worker = await parts.enter_async_context(await start_worker(local))
        say(f"worker           process {worker.pid}, log {worker.log.file}")
        note = _note(local, server, worker, url)
        parts.enter_context(running.announced(settings.home, note))
        yield Stack(local, server, worker, model, note)


def local_settings(settings: Settings, address: str, model_url: str | None) -> Settings:
    """The settings of a worker of this stack: this server, no deployment, and the offline model if any."""
    temporal = TemporalSettings(address=address, namespace="default", queue=settings.temporal.queue)
    slots = settings.slots if model_url is None else offline_slots(model_url)
    changes = {"temporal": temporal, "slots": slots, "deployment": DeploymentSettings()}
    return settings.model_copy(update=changes)


def free_port(preferred: int) -> int | None:
    """The port where nothing listens on it, else None."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            return None
    return preferred


def port_of(address: str) -> int:
    """The port of `host:port`.

    Raises:
        TurnwrightError: `config.invalid`.
    """
    port = address.rpartition(":")[2]
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise TurnwrightError(
            Code.CONFIG_INVALID, f"no port in {address!r}", where="temporal.address", accepted="host:port"
        )
    return int(port)


def offline_slots(url: str, *more: str) -> dict[str, dict[str, Any]]:
    """The usual slots, and those that are named, all of them answered by the offline model."""
    slot = {
        "wire": "openai-chat",
        "base_url": url,
        "model": "offline",
        "price_input": PRICE_INPUT,
        "price_output": PRICE_OUTPUT,
    }
    return dict.fromkeys(sorted({*SLOTS, *more}), slot)


def _note(settings: Settings, server: DevServer, worker: ChildProcess, model: str | None) -> running.Running:
    return running.Running(
        pid=getpid(),
        address=server.address,
        ui_url=server.ui_url,
        store_url=settings.store_url,
        worker_log=str(worker.log.file),
        model_url=model,
    )
