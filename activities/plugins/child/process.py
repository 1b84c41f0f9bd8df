"""One child process, as the worker sees it: started, talked to, and ended.

Whatever the process does, it can only end its own invocations: each gets an error that says how.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from pydantic import ValidationError

from activities.plugins.child.confinement import ROOT
from activities.plugins.child.messages import (
    LIFECYCLE,
    MAX_LINE_BYTES,
    Refused,
    Start,
    Started,
    Stop,
    line,
    split,
)
from activities.plugins.code import failed
from kernel.errors import Code, TurnwrightError

START_S: Final = 15.0
STOP_S: Final = 15.0
"""Seconds that a package may take to start and to clean up. Spec: plugin-model §30."""

_WAITING: Final = 256
"""Messages of one invocation that may wait to be read; then the process has to wait."""
_UNREAD_BYTES: Final = 8 * 1024 * 1024
_SAID_BYTES: Final = 64 * 1024
_MAIN: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from activities.plugins.child.main import main; main(int(sys.argv[2]))"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _End:
    """Why there are no more messages."""

    reason: str


class Child:
    """A running process for one package; made by `spawn`, of use after `begin`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.started = Started(level="process")
        self._process = process
        self._package = ""
        self._to_code, self._from_code = process.stdin, process.stdout
        self._open: dict[int, Channel] = {}
        self._number = 0
        self._ended: _End | None = None
        self._heard: deque[str] = deque(maxlen=8)
        self._tasks = [asyncio.create_task(self._listen(process.stderr))]

    @classmethod
    async def spawn(cls) -> Self:
        """Start a process that knows of no package yet: most of a start is Python's own."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-B", "-c", _MAIN, str(ROOT), str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MAX_LINE_BYTES,
            env={"LANG": "C.UTF-8"},  # nothing of the worker's: keys stand there
            cwd="/",
            start_new_session=True,  # a Ctrl-C at the terminal is the worker's to hear
        )
        return cls(process)

    async def begin(self, start: Start) -> None:
        """Load the package in it; a process that could not is gone.

        Raises:
            TurnwrightError: `package.load-failed`, `package.isolation`, or what loading raises.
        """
        self._package = start.package
        try:
            async with asyncio.timeout(START_S):
                self.started = await self._begin(start)
        except TimeoutError:
            await self._give_up()
            raise failed(start.package, f"the package did not start within {START_S:g} s") from None
        except BaseException:
            await self._give_up()
            raise
        self._tasks.append(asyncio.create_task(self._read()))

    @property
    def alive(self) -> bool:
        """Whether it takes invocations."""
        return self._ended is None and self._process.returncode is None

    @property
    def busy(self) -> bool:
        """Whether an invocation is open."""
        return bool(self._open)

    @property
    def printed(self) -> str:
        """The last of what the package has printed."""
        return "\n".join(self._heard)

    def open(self) -> Channel:
        """A channel for one invocation."""
        self._number += 1
        channel = self._open[self._number] = Channel(self, self._number)
        if self._ended:
            channel.end(self._ended)
        return channel

    def write(self, number: int, text: str) -> None:
        """Send a message to an invocation; to a process that does not read, none."""
        if self._ended:
            return
        self._to_code.write(line(number, text))
        if self._to_code.transport.get_write_buffer_size() > _UNREAD_BYTES:
            self.kill("it reads no messages")

    def forget(self, number: int) -> None:
        """An invocation is over."""
        self._open.pop(number, None)

    def kill(self, reason: str) -> None:
        """End the process at once; every open invocation fails with the reason."""
        self._end(reason)
        if self._process.returncode is None:
            self._kill_group()

    async def stop(self) -> None:
        """Let the package clean up, at most `STOP_S` seconds, then end the process."""
        if self.alive:
            self.write(0, Stop().model_dump_json())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOP_S)
        self.kill("it was stopped")
        await self._process.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # the pipes end with the process
        self._to_code.close()

    async def _give_up(self) -> None:
        self.kill("it did not start")
        await self.stop()

    async def _begin(self, start: Start) -> Started:
        self._to_code.write(line(0, start.model_dump_json()))
        try:
            received = await self._from_code.readline()
            if not received:
                await self._process.wait()
                raise failed(start.package, f"the package's process {self._status()} before it had started")
            answer = LIFECYCLE.validate_json(split(received)[1])
        except (ValueError, ValidationError):
            raise failed(start.package, "the package wrote into the channel to its worker") from None
        if isinstance(answer, Refused):
            raise _refusal(answer)
        if not isinstance(answer, Started):
            raise failed(start.package, "the package wrote into the channel to its worker")
        return answer

    async def _read(self) -> None:
        """Hand messages to their invocations until the process ends."""
        try:
            while received := await self._from_code.readline():
                number, text = split(received)
                channel = self._open.get(number)
                if channel is not None:
                    await channel.put(text)
        except ValueError:  # a line that is too long, too
            self.kill("it wrote into the channel to its worker")
        except ConnectionError:
            pass
        await self._process.wait()
        self._kill_group()
        self._end(f"it {self._status()}")

    async def _listen(self, errors: asyncio.StreamReader | None) -> None:
        """Log what the package prints; past a limit it is read and dropped."""
        left = _SAID_BYTES
        while errors is not None and (chunk := await errors.read(4096)):
            text = chunk.decode(errors="replace").strip()
            self._heard.append(text[-500:])
            if left > 0 and text:
                _log.info("package %s prints: %s", self._package, text)
            left -= len(chunk)

    def _kill_group(self) -> None:
        """End the process, and those that it started where nothing kept it from that."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _end(self, reason: str) -> None:
        if self._ended is None:
            self._ended = _End(f"the process of package {self._package} is gone: {reason}")
            for channel in self._open.values():
                channel.end(self._ended)

    def _status(self) -> str:
        status = self._process.returncode
        if status is not None and status < 0:
            return f"was killed by signal {-status} ({signal.Signals(-status).name})"
        said = f": {self._heard[-1]}" if self._heard else ""
        return f"ended with status {status}{said}"[:250]


class Channel:
    """A `Transport` of one invocation in a child process."""

    def __init__(self, child: Child, number: int) -> None:
        self.child = child
        self._number = number
        self._received: asyncio.Queue[str | _End] = asyncio.Queue()
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._closed = False

    async def receive(self) -> str | None:
        """See `Transport`.

        Raises:
            TurnwrightError: `runtime.failed` when the process is gone.
        """
        message = await self._received.get()
        self._room.set()
        if isinstance(message, _End):
            raise TurnwrightError(Code.RUNTIME_FAILED, message.reason)
        return message or None

    def send(self, text: str) -> None:
        """See `Transport`."""
        self.child.write(self._number, text)

    async def close(self, grace_s: float) -> None:
        """See `Transport`. Code that goes on after its grace takes its process with it."""
        if grace_s:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), grace_s)
            if not self._over.is_set():
                self.child.kill("one of its runs did not stop when it was told to")
        self._closed = True
        self.child.forget(self._number)
        self._room.set()

    async def put(self, text: str) -> None:
        """Take a message of the code; an empty one is the last."""
        if not text:
            self._over.set()
        self._received.put_nowait(text)
        while self._received.qsize() > _WAITING and not (self._closed or self._over.is_set()):
            self._room.clear()
            await self._room.wait()

    def end(self, end: _End) -> None:
        """There are no more messages."""
        self._over.set()
        self._received.put_nowait(end)
        self._room.set()


def _refusal(refused: Refused) -> TurnwrightError:
    code = Code(refused.code) if refused.code in set(Code) else Code.PACKAGE_LOAD
    return TurnwrightError(
        code, refused.message[:1000], where=refused.where[:300], accepted=refused.accepted[:300]
    )
