"""Development on one machine: everything runs until Ctrl-C, or until a part of it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Final, NoReturn

from client import running, stack
from kernel.errors import Code, TurnwrightError
from link.settings import Settings

_STOP_S: Final = 40.0
_POLL_S: Final = 0.1


async def serve(
    settings: Settings,
    say: Callable[[str], None],
    *,
    offline: bool,
    free_port: bool = False,
    ready: Callable[[running.Running], None] = lambda _: None,
) -> NoReturn:
    """Run server, worker and, without configured slots or when asked, the offline model.

    Args:
        say: hears what is done, line by line.
        ready: hears once that everything runs.

    Raises:
        TurnwrightError: `worker.start-failed` when a part ends by itself, and what starting refuses.
    """
    if running_now := running.read(settings.home):
        raise TurnwrightError(
            Code.SERVER_START_FAILED,
            f"process {running_now.pid} runs everything here already, at {running_now.address}",
            where=str(settings.home),
            accepted="`turnwright dev --stop` first, or another TURNWRIGHT_HOME",
        )
    settings = followed(settings)
    offline = offline or not settings.slots
    wanted = stack.port_of(settings.temporal.address)
    port = None if free_port else stack.free_port(wanted)
    async with stack.start(settings, offline=offline, port=port, say=say) as parts:
        if offline:
            say(
                "No language model is used: an offline stand-in answers. [slots.story] configures a real one."
            )
        say(f"home {settings.home}; `turnwright play` in another terminal plays; Ctrl-C stops everything")
        for folder in settings.package_folders:
            say(f"{folder} is watched: later turns run what its packages become")
        ready(parts.note)
        raise await parts.broken()


def followed(settings: Settings) -> Settings:
    """These settings, with sessions following their package folders."""
    return settings.model_copy(update={"packages": settings.packages.model_copy(update={"watch": True})})


async def stop(settings: Settings) -> int:
    """Stop what runs under this home, and wait until it is gone; returns its process id.

    Raises:
        TurnwrightError: `server.unreachable` when nothing runs here.
    """
    note = running.read(settings.home)
    if note is None:
        raise TurnwrightError(
            Code.SERVER_UNREACHABLE,
            "nothing runs here",
            where=str(settings.home),
            accepted="`turnwright dev`",
        )
    os.kill(note.pid, signal.SIGTERM)
    deadline = asyncio.get_running_loop().time() + _STOP_S
    while running.read(settings.home) is not None:
        if asyncio.get_running_loop().time() > deadline:
            raise TurnwrightError(
                Code.SERVER_UNREACHABLE, f"process {note.pid} does not end", accepted=f"kill -9 {note.pid}"
            )
        await asyncio.sleep(_POLL_S)
    return note.pid
