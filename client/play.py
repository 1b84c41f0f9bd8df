"""Interactive play: type an action, read the story as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal

from client.api import Turnwright
from client.follow import Follower
from client.output import INTERRUPTED
from client.screen import Screen
from kernel.errors import Code, TurnwrightError
from kernel.wire.approvals import Approval
from kernel.wire.turn import TurnResult

HELP: Final = "Type what you do. /state shows the session, /quit leaves; Ctrl-C stops the running turn."


class Player:
    """One person at one session.

    Args:
        read: the next line a person types; None at the end of input.
        nodes: show the pipeline beside the story.
    """

    def __init__(
        self,
        client: Turnwright,
        session_id: str,
        screen: Screen,
        *,
        nodes: bool = False,
        read: Callable[[str], Coroutine[Any, Any, str | None]] | None = None,
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._screen = screen
        self._nodes = nodes
        self._read = read or Typed().read
        self._turn: asyncio.Task[TurnResult] | None = None
        self._stopping = False
        self._stop: asyncio.Task[None] | None = None

    async def play(self) -> int:
        """Play until `/quit`, the end of input, or a second Ctrl-C; returns the exit status."""
        await self._enter()
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGINT, self._interrupt, task)
        try:
            while (text := await self._read("> ")) is not None and text.strip() != "/quit":
                await self._obey(text.strip())
        except asyncio.CancelledError:
            return INTERRUPTED
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        return 0

    async def _enter(self) -> None:
        """Join the session, or make it."""
        try:
            view = await self._client.state(self._session_id)
        except TurnwrightError as error:
            if error.code != Code.SESSION_UNKNOWN:
                raise
            view = await self._client.new_session(self._session_id)
        await self._client.require_alive(self._session_id)
        if view.status == "ended":
            raise TurnwrightError(Code.SESSION_ENDED, "the session has ended", accepted="another session")
        self._screen.line(f"session {self._session_id}")
        self._screen.state(view)
        self._screen.line(HELP, "dim")

    async def _obey(self, text: str) -> None:
        if not text:
            return
        try:
            if text == "/state":
                self._screen.state(await self._client.state(self._session_id))
            elif text.startswith("/"):
                self._screen.line(HELP, "dim")
            else:
                await self._act(text)
        except TurnwrightError as error:
            self._screen.refused(error)

    async def _act(self, text: str) -> None:
        receipt = await self._client.submit(self._session_id, text)
        self._screen.queued(receipt)
        follower = Follower(self._client, self._session_id, self._screen, self._ask, nodes=self._nodes)
        self._stopping = False
        self._turn = asyncio.create_task(follower.follow(receipt))
        try:
            result = await self._turn
        finally:
            self._turn = None
        self._screen.ended(result)

    async def _ask(self, approval: Approval) -> None:
        self._screen.question(approval)
        answer = await self._read("  allow it? [y/N] ")
        if answer is None:
            self._screen.line("  the input has ended, and nobody can allow it", "dim")
        allowed = (answer or "").strip().lower() in ("y", "yes")
        decision: Literal["approve", "deny"] = "approve" if allowed else "deny"
        receipt = await self._client.resolve(approval.ref, decision, session_id=self._session_id)
        self._screen.answered(approval, decision, first=receipt.outcome == "applied")

    def _interrupt(self, player: asyncio.Task[Any]) -> None:
        """The first Ctrl-C of a turn asks it to stop; any other one leaves."""
        if self._turn is None or self._stopping:
            player.cancel()
            return
        self._stopping = True
        self._screen.line("stopping the turn; Ctrl-C again leaves", "yellow")
        self._stop = asyncio.create_task(self._cancel_turn())

    async def _cancel_turn(self) -> None:
        try:
            await self._client.control(self._session_id, "cancel-turn")
        except TurnwrightError as error:
            self._screen.refused(error)


class Typed:
    """Lines of stdin, read by one thread: a line is never lost to a question that nobody awaits any more.

    Args:
        prompts: write to stdout what is asked for.
    """

    def __init__(self, *, prompts: bool = True) -> None:
        self._prompts = prompts
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._begun = False

    async def read(self, prompt: str) -> str | None:
        """The next line; None at the end of input."""
        if not self._begun:
            self._begun = True
            # A daemon: the interpreter must not wait for a line that nobody will type.
            threading.Thread(target=self._pump, args=(asyncio.get_running_loop(),), daemon=True).start()
        if self._prompts:
            sys.stdout.write(prompt)
            sys.stdout.flush()
        text = await self._lines.get()
        if not text:
            self._lines.put_nowait("")  # the end stays the end
            return None
        return text.rstrip("\n")

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        text = "\n"
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            while text:
                text = _line()
                loop.call_soon_threadsafe(self._lines.put_nowait, text)


def _line() -> str:
    """The next line of stdin; empty at its end, and where there is none to read from."""
    try:
        return sys.stdin.readline() if sys.stdin else ""
    except OSError:
        return ""
