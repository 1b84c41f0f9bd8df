"""What runs inside a child process: it confines itself, loads one package, and answers invocations.

The channel is taken off standard input and output first: what package code prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from contextlib import suppress
from pathlib import Path

from activities.plugins.child.confinement import Confinement, confine, die_with
from activities.plugins.child.messages import (
    LIFECYCLE,
    MAX_LINE_BYTES,
    Refused,
    Start,
    Started,
    ToolEntry,
    line,
    split,
)
from activities.plugins.code import CodeFiles, PackageCode
from activities.plugins.guest import serve
from activities.plugins.loader import load_code
from kernel.errors import Code, TurnwrightError
from kernel.manifest.contributes import Contributes
from kernel.policy import LAYERS, level_of, suffices
from turnwright.sdk.registration import RegisteredTool


def main(parent: int) -> None:
    """Serve the worker with this process id until it says stop, or is gone."""
    die_with(parent)
    inbound, outbound = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    asyncio.run(_Guest(outbound).run(inbound))
    os._exit(0)  # threads that the package left behind hold nothing up


class _Guest:
    """The invocations of one process, each with the messages that are meant for it."""

    def __init__(self, outbound: int) -> None:
        self._outbound = outbound
        self._open: dict[int, asyncio.Queue[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, inbound: int) -> None:
        """Start, then answer until the end."""
        reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(inbound, "rb", 0))
        start = LIFECYCLE.validate_json(split(await reader.readline())[1])
        if not isinstance(start, Start):
            raise TurnwrightError(Code.WIRE_MALFORMED, f"expected a start, got {start.type!r}")
        code = self._start(start)
        while code is not None and (received := await reader.readline()):
            number, text = split(received)
            if number == 0:
                await self._stop(code)
                return
            self._deliver(code, number, text)

    def _start(self, start: Start) -> PackageCode | None:
        confinement = confine(Path(start.folder), memory_bytes=start.memory_bytes)
        try:
            code = _load(start, confinement)
        except TurnwrightError as error:
            refused = Refused(
                code=error.code, message=error.message, where=error.where, accepted=error.accepted
            )
            self._write(0, refused.model_dump_json())
            return None
        tools = tuple(_entry(tool) for tool in code.tools.values())
        started = Started(level=level_of(confinement.applied), missing=confinement.missing, tools=tools)
        self._write(0, started.model_dump_json())
        return code

    def _deliver(self, code: PackageCode, number: int, text: str) -> None:
        if number not in self._open:
            self._open[number] = asyncio.Queue()
            task = asyncio.create_task(self._serve(code, number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._open[number].put_nowait(text)

    async def _serve(self, code: PackageCode, number: int) -> None:
        try:
            with suppress(TurnwrightError):  # an answer that came late, to an invocation that is over
                await serve(code, self._open[number].get, lambda text: self._write(number, text))
        finally:
            del self._open[number]
            self._write(number)

    async def _stop(self, code: PackageCode) -> None:
        for dispose in reversed(code.registered.disposers):
            result = dispose()
            if inspect.isawaitable(result):
                await result

    def _write(self, number: int, text: str = "") -> None:
        data = line(number, text)
        while data:
            data = data[os.write(self._outbound, data) :]


def _load(start: Start, confinement: Confinement) -> PackageCode:
    level = level_of(confinement.applied)
    if not suffices(level, start.minimum):
        gone = "; ".join(f"{layer} ({LAYERS[layer]}): {why}" for layer, why in confinement.missing.items())
        raise TurnwrightError(
            Code.PACKAGE_ISOLATION,
            f"code of packages that are not bundled would run at the level {level!r}: {gone}",
            accepted=f"a system that offers {start.minimum!r}, or a lower isolation.minimum",
        )
    files = CodeFiles(
        package=start.package,
        handlers=start.handlers,
        guards=start.guards,
        entry=start.entry,
        contributes=Contributes.model_validate(start.contributes or {}),
    )
    return load_code(Path(start.folder), files, digest=start.digest, foreign=True)


def _entry(tool: RegisteredTool) -> ToolEntry:
    return ToolEntry(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        risk=tool.risk,
        needs_approval=tool.needs_approval,
        output=tool.output,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
