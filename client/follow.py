"""Watches one turn while it runs and prints what happens: nodes, story, tools, questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from client import show
from client.api import Turnwright
from client.history import ToolUse
from client.screen import Screen
from kernel.errors import Code, TurnwrightError
from kernel.wire.approvals import Approval
from kernel.wire.session import Receipt
from kernel.wire.turn import GraphView, TurnResult

LOOK_S: Final = 0.2
_LATE_STREAM_S: Final = 2.0

Asked = Callable[[Approval], Awaitable[None]]


class Follower:
    """Prints one turn.

    Args:
        asked: hears of every open question of the turn, once.
        nodes: print node states as they change.
    """

    def __init__(
        self, client: Turnwright, session_id: str, screen: Screen, asked: Asked, *, nodes: bool = True
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._screen = screen
        self._asked = asked
        self._nodes = nodes
        self._view: GraphView | None = None
        self._tools: list[ToolUse] = []
        self._refs: set[str] = set()
        self._one_look = asyncio.Lock()

    @property
    def view(self) -> GraphView | None:
        """The turn's graph as last seen."""
        return self._view

    async def follow(self, receipt: Receipt) -> TurnResult:
        """Print until the turn ends; returns its result.

        Raises:
            TurnwrightError: as `Turnwright.wait`, or whatever `asked` raises.
        """
        result = asyncio.ensure_future(self._client.wait(receipt))
        looking = asyncio.ensure_future(self._look_on(receipt))
        reading = asyncio.ensure_future(self._read(receipt))
        try:
            await asyncio.wait({result, looking}, return_when=asyncio.FIRST_COMPLETED)
            if looking.done() and (error := looking.exception()):
                raise error
            ended = await result
            await asyncio.wait({reading}, timeout=_LATE_STREAM_S)
        finally:
            for task in (result, looking, reading):
                task.cancel()
            await asyncio.gather(result, looking, reading, return_exceptions=True)
            self._screen.end_prose()
        await self._look(receipt)
        return ended

    async def _look_on(self, receipt: Receipt) -> None:
        while True:
            await self._look(receipt)
            await self._questions(receipt)
            await asyncio.sleep(LOOK_S)

    async def _look(self, receipt: Receipt) -> None:
        async with self._one_look:  # an older view must never be printed behind a newer one
            await self._print_changes(receipt)

    async def _print_changes(self, receipt: Receipt) -> None:
        try:
            view = await self._client.graph(receipt.workflow_id)
        except TurnwrightError as error:
            if error.code not in (Code.TURN_UNKNOWN, Code.WORKER_ABSENT, Code.WORKFLOW_STUCK):
                raise
            return  # not there yet, or trouble that the waiting call tells about
        if self._nodes:
            self._screen.moved(self._view, view)
        self._view = view
        await self._tool_calls(view)

    async def _tool_calls(self, view: GraphView) -> None:
        agents = [node.runtime_id for node in view.nodes if node.kind == "agent" and node.status != "waiting"]
        if not agents or not self._client.history.available:
            return
        found = await self._client.history.tools(view.turn_id, agents)
        for use in show.new_tools(self._tools, found):
            self._screen.tool(use)
        self._tools = found

    async def _questions(self, receipt: Receipt) -> None:
        try:
            view = await self._client.state(self._session_id)
        except TurnwrightError:
            return  # the waiting call tells about it
        for approval in view.approvals:
            new = approval.ref not in self._refs and approval.turn_id == receipt.turn_id
            if new and approval.status == "open":
                self._refs.add(approval.ref)
                await self._look(receipt)  # show first what led to the question
                await self._asked(approval)

    async def _read(self, receipt: Receipt) -> None:
        """Print the story as it comes; a new attempt takes back what an earlier one said."""
        if not self._client.history.available:
            return
        begun: set[str] = set()
        async for piece in self._client.stream(receipt.turn_id):
            if piece.kind == "text":
                if piece.runtime_id not in begun:
                    begun.add(piece.runtime_id)
                    await self._look(receipt)
                self._screen.prose(piece.text)
            elif piece.kind == "reset" and piece.runtime_id in begun:
                self._screen.again()
