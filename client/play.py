"""Interactive play in a terminal: type an action, read the story as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

from rich.console import Console

from client import show
from client.api import Turnwright
from client.follow import Follower, Screen
from client.output import INTERRUPTED
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
        console: Console,
        *,
        nodes: bool = False,
        read: Callable[[str], Coroutine[Any, Any, str | None]] | None = None,
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._screen = Screen(console, margin="  ")
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
        if view.status == "ended":
            raise TurnwrightError(Code.SESSION_ENDED, "the session has ended", accepted="another session")
        self._screen.line(
            f"session {self._session_id}, {show.count(view.completed_player_turns, 'turn')} played"
        )
        self._screen.line(HELP, "dim")

    async def _obey(self, text: str) -> None:
        if not text:
            return
        try:
            if text == "/state":
                await self._state()
            elif text.startswith("/"):
                self._screen.line(HELP, "dim")
            else:
                await self._act(text)
        except TurnwrightError as error:
            self._screen.line(f"! {error}")

    async def _act(self, text: str) -> None:
        receipt = await self._client.submit(self._session_id, text)
        if receipt.position:
            self._screen.line(f"{receipt.position} before it in the queue", "dim")
        follower = Follower(self._client, self._session_id, self._screen, self._ask, nodes=self._nodes)
        self._stopping = False
        self._turn = asyncio.create_task(follower.follow(receipt))
        try:
            result = await self._turn
        finally:
            self._turn = None
        if result.status != "committed":
            self._screen.lines(show.result_lines(result), "! ")
        else:
            self._screen.line(f"{show.usage(result.usage)}", "dim")

    async def _ask(self, approval: Approval) -> None:
        self._screen.line(show.approval_line(approval))
        answer = await self._read("  allow it? [y/N] ")
        allowed = (answer or "").strip().lower() in ("y", "yes")
        receipt = await self._client.resolve(
            approval.ref, "approve" if allowed else "deny", session_id=self._session_id
        )
        said = "approved" if allowed else "denied"
        self._screen.line(
            f"  {said if receipt.outcome == 'applied' else 'somebody else answered first'}", "dim"
        )

    async def _state(self) -> None:
        view = await self._client.state(self._session_id)
        running = view.running.turn_id if view.running else "none"
        self._screen.line(f"{view.status}, {show.count(view.completed_player_turns, 'turn')} committed")
        self._screen.line(f"running: {running}, waiting: {len(view.queue)}, jobs: {len(view.jobs)}")
        for approval in view.approvals:
            if approval.status == "open":
                self._screen.line(show.approval_line(approval))
        for notice in view.notices:
            self._screen.line(f"! {notice.code}: {notice.message}")

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
            self._screen.line(f"! {error}")


class Typed:
    """Lines of stdin, read by one thread: a line is never lost to a question that nobody awaits any more."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._begun = False

    async def read(self, prompt: str) -> str | None:
        """The next line; None at the end of input."""
        if not self._begun:
            self._begun = True
            # A daemon: the interpreter must not wait for a line that nobody will type.
            threading.Thread(target=self._pump, args=(asyncio.get_running_loop(),), daemon=True).start()
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
                text = sys.stdin.readline()
                loop.call_soon_threadsafe(self._lines.put_nowait, text)
