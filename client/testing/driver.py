"""A session of a package on the real thing, for tests with pytest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from client.testing.plan import load
from client.testing.stand import Stand, stand
from kernel.wire.turn import TurnResult
from link.settings import load_settings
from store import data, events

_MOST = 1_000


class PackageDriver:
    """One session; its code runs in processes of its own, as every package's that is not bundled.

    Attributes:
        package_id: the package under test.
        session_id: the session.
    """

    def __init__(self, stand: Stand, package_id: str, session_id: str) -> None:
        self.package_id = package_id
        self.session_id = session_id
        self._stand = stand

    async def play(
        self, text: str, replies: Mapping[str, Sequence[str | Mapping[str, Any]]] | None = None
    ) -> TurnResult:
        """Play a turn to its end.

        Args:
            text: what the player does.
            replies: runtime id → what the model answers it, in order: a text, or a reply as in a case file
                (`content`, `toolCalls`, `finishReason`). Other runtimes get the offline model.
        """
        await self._script(replies)
        client = self._stand.client
        return await client.wait(await client.submit(self.session_id, text))

    async def run(
        self,
        runtime_id: str,
        payload: Any = None,
        replies: Mapping[str, Sequence[str | Mapping[str, Any]]] | None = None,
    ) -> TurnResult:
        """Run a manual runtime to its end; `replies` as of `play`."""
        await self._script(replies)
        client = self._stand.client
        return await client.wait(await client.run(self.session_id, runtime_id, payload))

    async def configure(self, **changes: Any) -> None:
        """Change packages, settings or bindings from the next turn on."""
        await self._stand.client.configure(self.session_id, **changes)

    async def data(self, namespace: str) -> dict[str, Any]:
        """Committed records of the package: key → value."""
        async with self._stand.client.history.store.read() as conn:
            page = await data.list_records(conn, self.session_id, self.package_id, namespace, limit=_MOST)
        return {record.key: record.value for record in page.records}

    async def events(self) -> list[tuple[str, Any]]:
        """Committed events of the session: topic and payload."""
        async with self._stand.client.history.store.read() as conn:
            found = await events.list_events(conn, self.session_id, limit=_MOST)
        return [(event.topic, event.payload) for event in found]

    async def asked(self) -> list[dict[str, Any]]:
        """The model's calls since the last `play` or `run`: `{runtime, request, reply}`."""
        return await self._stand.asked()

    async def _script(self, replies: Mapping[str, Sequence[str | Mapping[str, Any]]] | None) -> None:
        written = {name: [_reply(reply) for reply in said] for name, said in (replies or {}).items()}
        await self._stand.script(written)


@asynccontextmanager
async def play_package(folder: str | Path, *, beside: Sequence[str] = ()) -> AsyncIterator[PackageDriver]:
    """Start a server, a worker and a session of the package of a folder; all of it ends with the block.

    Args:
        folder: the package; its code runs without being asked about.
        beside: ids of bundled packages that are active too.

    Raises:
        TurnwrightError: `package.invalid` with every problem, or why a part does not start.
    """
    package = load(Path(folder))
    async with stand(load_settings(), [Path(folder)], [package], live=False) as ready:
        session_id = f"test-{uuid4().hex[:12]}"
        await ready.client.new_session(session_id, [package.id, *beside])
        yield PackageDriver(ready, package.id, session_id)


def _reply(reply: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"content": reply} if isinstance(reply, str) else reply
