"""Corrections that the loop puts before a request, in one place so that their wording is one voice."""

from __future__ import annotations

from kernel.wire.agent import Nudge

_TEXTS: dict[Nudge, str] = {
    "tool-use": "The run is not complete: it ends with a successful call to the tool {tool}. Call it now.",
    "loop": "The last calls were identical and changed nothing. Take another approach, or finish.",
    "empty-reply": "The last reply had no content. Answer now.",
    "output-repair": "The last reply does not fit the required output: {problem} Answer with JSON only.",
    "final-answer": "No more tool calls are possible. Give the final answer now, from what is known.",
    "shorter": "The last reply was cut at the output limit. Answer again, more briefly.",
}


def nudge_text(nudge: Nudge, *, tool: str = "", problem: str = "") -> str:
    """The correction's text, marked so that a model tells it from the player's words."""
    text = _TEXTS[nudge].format(tool=f"`{tool}`" if tool else "that was asked for", problem=problem)
    return f"<system-instruction>{text}</system-instruction>"
