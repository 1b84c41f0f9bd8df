"""The points where a worker is killed, by the name that `docs/operations.md` gives them.

What each costs stands there, in one table; `read_table` reads it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path

from tests.support.crash_worker import Point

DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"
NOBODY = "nobody dies"

POINTS: dict[str, Point | None] = {
    NOBODY: None,
    "action stored": Point("accept_action", "after insert actions"),
    "turn opened": Point("open_turn", "after insert turns"),
    "function started": Point("run_function", "started"),
    "function, call not begun": Point("run_function", "after insert journal"),
    "function, call begun": Point("run_function", "after insert calls"),
    "function, answer under way": Point("run_function", "answer begun"),
    "function, answer not stored": Point("run_function", "before update calls"),
    "function, between calls": Point("run_function", "after update calls"),
    "function, in its tool": Point("run_function", "own data read"),
    "function, tool stored": Point("run_function", "after update journal", 2),
    "function, result stored": Point("run_function", "after insert runs"),
    "agent, call not begun": Point("call_model 1", "after insert transcripts"),
    "agent, call begun": Point("call_model 1", "after insert calls"),
    "agent, answer under way": Point("call_model 2", "answer piece", 2),
    "agent, answer not stored": Point("call_model 1", "before insert transcripts", 2),
    "agent, reply stored": Point("call_model 1", "after insert transcripts", 2),
    "tool started": Point("run_tool mark", "started"),
    "tool at work": Point("run_tool mark", "own data read"),
    "tool done, not stored": Point("run_tool mark", "before insert tool_results"),
    "tool stored": Point("run_tool mark", "after insert tool_results"),
    "data tool stored": Point("run_tool plugin-data-set", "after insert tool_results"),
    "commit not written": Point("commit_turn", "before update turns"),
    "commit written": Point("commit_turn", "after update turns"),
}


@dataclass(frozen=True)
class Cost:
    """What a turn cost in which a worker died.

    Attributes:
        before: model calls that were sent before the kill.
        sent: model calls that were sent in all.
        counted, unknown: calls, and calls of unknown outcome, in the turn's usage.
        handler, carve, mark: how often the function, its tool and the agent's tool started.
    """

    before: int
    sent: int
    counted: int
    unknown: int
    handler: int
    carve: int
    mark: int

    @property
    def row(self) -> str:
        """As the document prints it."""
        return " | ".join(map(str, astuple(self)))


def read_table() -> dict[str, Cost]:
    """The table of the document, by point."""
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in DOCUMENT.open()]
    return {row[0]: Cost(*map(int, row[-7:])) for row in cells if len(row) == 8 and row[-1].isdigit()}
