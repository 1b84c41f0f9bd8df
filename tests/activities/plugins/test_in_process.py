"""What only code in the worker process can do, or be looked at while it does."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from activities.plugins import host
from activities.plugins.host import invoke
from kernel.errors import Code, TurnwrightError
from tests.activities.plugins.packages import call, load


async def test_code_that_ignores_its_cancellation_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "GRACE_S", 0.01)
    source = """
    import asyncio
    LEFT, ASKING = asyncio.Event(), asyncio.Event()
    async def handler(ctx):
        while not LEFT.is_set():
            try:
                await LEFT.wait()
            except asyncio.CancelledError:
                pass
        ASKING.set()
        await ctx.plugin_data.set("late", "k", 1)
    """
    code = load(tmp_path, {"handler.py": source})
    module = code.function("handler", "handler.py").__globals__
    written: list[Any] = []

    async def write(params: dict[str, Any]) -> None:
        written.append(params)

    with pytest.raises(TurnwrightError) as caught:
        await invoke(code, call(), {"plugin_data.set": write}, timeout_s=0.01)
    assert caught.value.code == Code.RUNTIME_TIMEOUT
    module["LEFT"].set()
    async with asyncio.timeout(10):
        await module["ASKING"].wait()
    for _ in range(10):
        await asyncio.sleep(0)  # whoever answered would have had its turn
    assert written == []
    gc.collect()


async def test_a_cancelled_run_cleans_up_before_the_cancellation_goes_on(tmp_path: Path) -> None:
    source = """
    import asyncio
    SEEN = []
    async def handler(ctx):
        try:
            await ctx.state.get()
        finally:
            await asyncio.sleep(0)
            SEEN.append(ctx.signal.aborted)
    """
    code = load(tmp_path, {"handler.py": source})
    asked, stopped = asyncio.Event(), asyncio.Event()

    async def hang(params: dict[str, Any]) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    run = asyncio.create_task(invoke(code, call(), {"state.get": hang}, timeout_s=5))
    await asked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert stopped.is_set()
    assert code.function("handler", "handler.py").__globals__["SEEN"] == [True]
