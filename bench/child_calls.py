"""Calls to package code: in a warm process of its own, and in this one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from activities.plugins.child.code import IsolatedCode, Isolation
from activities.plugins.child.pool import Children
from activities.plugins.code import CodeFiles, PackageCode
from activities.plugins.host import invoke
from activities.plugins.loader import load_code
from bench.measure import Clock, Sample
from kernel.wire.host import Invoke, StaticContext

CALLS = 200

_HANDLER = 'async def handler(ctx):\n    return {"mood": await ctx.state.get("/mood")}\n'
_INVOKE = Invoke(
    kind="handler",
    module="handler.py",
    context=StaticContext(
        plugin_id="warm", runtime_id="warm", session_id="s", turn_id="t", logical_turn=1, seed="s", now=0.0
    ),
)


async def calls(home: Path) -> tuple[Children, Sample, Sample]:
    """A warm child and the same code in this process, each as the time of a call in ms."""
    folder = home / "warm"
    _write(folder)
    files, children = CodeFiles("warm", handlers=("handler.py",)), Children()
    child = await IsolatedCode.load(
        folder, files, digest="sha256:warm", children=children, admit=_admit, isolation=Isolation()
    )
    here = load_code(folder, files, digest="sha256:warm")
    return children, _sample(child), _sample(here)


def _sample(code: IsolatedCode | PackageCode) -> Callable[[], Awaitable[float]]:
    async def sample() -> float:
        clock = Clock()
        for _ in range(CALLS):
            await invoke(code, _INVOKE, {"state.get": _mood}, timeout_s=10)
        return clock.seconds() * 1000 / CALLS

    return sample


def _write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "handler.py").write_text(_HANDLER)


async def _mood(params: dict[str, object]) -> str:
    return "calm"


async def _admit(session_id: str) -> None:
    return
