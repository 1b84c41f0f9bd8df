"""A rig in a thread of its own, for tests that must keep the main thread: commands take its signals.

with beside(tmp_path, packages={...}, model=script) as rig:
    CliRunner().invoke(app, ["session", "list"], env=rig.environ)
    rig.ask(rig.until_asked("tale"))
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.support.model_server import ModelServer, Reply
from tests.support.rig import Files, Rig, rig

T = TypeVar("T")
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Beside:
    """What runs in the other thread."""

    rig: Rig
    loop: asyncio.AbstractEventLoop

    @property
    def environ(self) -> dict[str, str]:
        """Settings of a command that talks to this rig."""
        return self.rig.settings.to_env()

    def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Await something in the rig's loop."""
        return asyncio.run_coroutine_threadsafe(question, self.loop).result(PATIENCE_S)


@contextmanager
def beside(
    tmp_path: Path, *, packages: Mapping[str, Files], script: Sequence[Reply] = (), **more: Any
) -> Iterator[Beside]:
    """As `rig`, in another thread.

    Args:
        script: replies of the model server, which must be made in the loop that it serves in.
    """
    ready: Future[Beside] = Future()
    over = asyncio.Event()

    async def stand() -> None:
        async with rig(tmp_path, packages=packages, model=ModelServer(script), **more) as built:
            ready.set_result(Beside(built, asyncio.get_running_loop()))
            await over.wait()

    def run() -> None:
        try:
            asyncio.run(stand())
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        standing = ready.result(PATIENCE_S)
        try:
            yield standing
        finally:
            standing.loop.call_soon_threadsafe(over.set)
    finally:
        thread.join(PATIENCE_S)
