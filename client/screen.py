"""Where a turn is shown: as lines and running prose to a person, or as JSON lines to a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import typer
from rich.console import Console
from rich.text import Text

from client import output, show
from client.history import ToolUse
from client.prose import Wrapper
from kernel.errors import TurnwrightError
from kernel.wire.approvals import Approval
from kernel.wire.session import Receipt, SessionView
from kernel.wire.turn import GraphView, TurnResult

_STYLES: Final = {
    "✓": "green",
    "✗": "red",
    "▸": "cyan",
    "○": "dim",
    "‖": "yellow",
    "?": "yellow",
    "!": "yellow",
}


class Screen:
    """Lines and running prose on one console; a line in the middle of prose ends the prose's line first."""

    def __init__(self, console: Console, margin: str = "    │ ") -> None:
        self.console = console
        self._margin = margin
        self._prose = self._fresh()

    def line(self, text: str = "", style: str | None = None) -> None:
        """Print a line; its mark decides its colour where no style does."""
        self.end_prose()
        mark = text.lstrip()[:1]
        self.console.print(Text(text, style=style or _STYLES.get(mark, "")))

    def lines(self, texts: Sequence[str], indent: str = "") -> None:
        """Print lines."""
        for text in texts:
            self.line(indent + text)

    def prose(self, text: str) -> None:
        """Print a piece of running text."""
        self._write(self._prose.feed(text))

    def end_prose(self) -> None:
        """End the running text."""
        self._write(self._prose.close())
        self._prose = self._fresh()

    def again(self) -> None:
        """Take back what the story said so far: a new attempt begins."""
        self.line("    (the story begins again)", "dim")

    def moved(self, before: GraphView | None, after: GraphView) -> None:
        """Show the nodes that changed between two looks."""
        for line in show.changes(before, after):
            self.line(f"  {line}", "bold" if not line.startswith(" ") else None)

    def tool(self, use: ToolUse) -> None:
        """Show a tool call that began or ended."""
        self.line(f"      {show.tool_line(use)}")

    def state(self, view: SessionView) -> None:
        """Show how a session stands."""
        running = view.running.turn_id if view.running else "none"
        self.line(f"{view.status}, {show.count(view.completed_player_turns, 'turn')} committed")
        self.line(f"running: {running}, waiting: {len(view.queue)}, jobs: {len(view.jobs)}")
        for approval in view.approvals:
            if approval.status == "open":
                self.question(approval)
        for notice in view.notices:
            self.line(f"! {notice.code}: {notice.message}")

    def queued(self, receipt: Receipt) -> None:
        """Show where an action went."""
        if receipt.position:
            self.line(f"{receipt.position} before it in the queue", "dim")

    def question(self, approval: Approval) -> None:
        """Show what a person is asked."""
        self.line(show.approval_line(approval))

    def answered(self, approval: Approval, decision: str, *, first: bool) -> None:
        """Show what became of an answer."""
        said = "approved" if decision == "approve" else "denied"
        self.line(f"  {said if first else 'somebody else answered first'}", "dim")

    def ended(self, result: TurnResult) -> None:
        """Show how a turn ended; a committed one has told its story already."""
        if result.status != "committed":
            self.lines(show.result_lines(result), "! ")
        else:
            self.line(show.usage(result.usage), "dim")

    def refused(self, error: TurnwrightError) -> None:
        """Show what was not done."""
        self.line(f"! {error}")

    def _write(self, text: str) -> None:
        if text:
            self.console.print(Text(text), end="")
            self.console.file.flush()

    def _fresh(self) -> Wrapper:
        return Wrapper(min(self.console.width, 100), self._margin)


class Events(Screen):
    """One JSON object on each line of stdout; what only helps people is left out.

    `event` says what it is: `session`, `turn` (a receipt), `text` (a piece of the story), `reset` (forget its
    pieces), `graph`, `tool`, `approval`, `answer`, `result`, `error`.
    """

    def line(self, text: str = "", style: str | None = None) -> None:
        """Say nothing."""

    def end_prose(self) -> None:
        """Say nothing: pieces join as they are."""

    def prose(self, text: str) -> None:
        self._say("text", text=text)

    def again(self) -> None:
        self._say("reset")

    def moved(self, before: GraphView | None, after: GraphView) -> None:
        if show.changes(before, after):
            self._say("graph", graph=after)

    def tool(self, use: ToolUse) -> None:
        self._say("tool", tool=use)

    def state(self, view: SessionView) -> None:
        self._say("session", session=view)

    def queued(self, receipt: Receipt) -> None:
        self._say("turn", turn=receipt)

    def question(self, approval: Approval) -> None:
        self._say("approval", approval=approval)

    def answered(self, approval: Approval, decision: str, *, first: bool) -> None:
        self._say("answer", ref=approval.ref, decision=decision, outcome="applied" if first else "superseded")

    def ended(self, result: TurnResult) -> None:
        self._say("result", result=result)

    def refused(self, error: TurnwrightError) -> None:
        self._say("error", **output.error_json(error))

    def _say(self, event: str, **what: Any) -> None:
        typer.echo(json.dumps(output.plain({"event": event, **what}), ensure_ascii=False))
