"""What the cases of one command run on: server, store, model and worker, all of them thrown away."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from client import grants, stack
from client.api import Turnwright
from client.processes import ChildProcess, start_offline_model, start_worker
from kernel.manifest import Package
from link.bundled import bundled
from link.dev_server import start_dev_server
from link.settings import Settings
from store import migrate


@dataclass(frozen=True)
class Stand:
    """What runs. `model_url`: of the model that can be told what to say; None plays against a real one."""

    client: Turnwright
    worker: ChildProcess
    model_url: str | None

    async def script(self, replies: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Say what the model is to answer single runtimes, and forget what it was asked before."""
        await self._model("POST", "/script", replies)

    async def asked(self) -> list[dict[str, Any]]:
        """What the model was asked since then, and what it said."""
        found: list[dict[str, Any]] = await self._model("GET", "/calls") or []
        return found

    async def _model(self, method: str, path: str, body: Any = None) -> Any:
        if self.model_url is None:
            return None
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.request(method, self.model_url.removesuffix("/v1") + path, json=body)
        return answer.raise_for_status().json()


@asynccontextmanager
async def stand(
    settings: Settings, folders: Sequence[Path], packages: Iterable[Package], *, live: bool
) -> AsyncIterator[Stand]:
    """Start everything for these package folders, whose code runs without being asked about.

    Args:
        live: play against the configured slots.

    Raises:
        TurnwrightError: `server.start-failed`, `worker.start-failed`, `store.*`, `package.*`.
    """
    async with AsyncExitStack() as parts:
        home = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="turnwright-test-")))
        server = await parts.enter_async_context(await start_dev_server(home, ui=False, in_memory=True))
        url = None
        if not live:
            model, url = await start_offline_model(home)
            await parts.enter_async_context(model)
        local = _settings(settings, home, folders, server.address, url, packages)
        await migrate.upgrade(local.store_url)
        for folder in folders:
            if folder.resolve().parent != bundled("plugins").resolve():
                await grants.approve(local, str(folder.resolve()), session_id=None, follow=False)
        worker = await parts.enter_async_context(await start_worker(local))
        client = await parts.enter_async_context(await Turnwright.connect(local))
        yield Stand(client, worker, url)


def _settings(
    settings: Settings,
    home: Path,
    folders: Sequence[Path],
    address: str,
    url: str | None,
    packages: Iterable[Package],
) -> Settings:
    """The settings of the person who tests, with everything that a test writes below `home`."""
    local = stack.local_settings(settings.model_copy(update={"home": home}), address, url)
    known = (folder for folder in settings.package_folders if folder.is_dir())
    paths = tuple(dict.fromkeys((*(folder.resolve() for folder in folders), *known)))
    changes: dict[str, Any] = {
        "store": local.store.model_copy(update={"url": ""}),
        "packages": local.packages.model_copy(update={"path": paths, "store": "database", "watch": False}),
    }
    if url is not None:
        changes["slots"] = stack.offline_slots(url, *(name for one in packages for name in _slots(one)))
    return local.model_copy(update=changes)


def _slots(package: Package) -> set[str]:
    named = set()
    for runtime in package.runtimes:
        manifest = runtime.manifest
        named |= {manifest.agent.model if manifest.agent else None}
        named |= {manifest.function.model if manifest.function else None}
    return {name for name in named if name is not None}
