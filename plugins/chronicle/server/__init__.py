"""The tools of the chronicle package."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from turnwright.sdk import Host, Json, ToolContext

NAMESPACE = "milestones"


class Milestone(BaseModel):
    """A turning point of the story."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=80, description="A few words that name the turning point.")
    note: str = Field(default="", max_length=400, description="One sentence on what has changed for good.")


async def mark_milestone(milestone: Milestone, ctx: ToolContext) -> Json:
    """Stage the milestone under a key that a repeated call meets again."""
    key = f"{ctx.logical_turn:05d}-{slug(milestone.title)}"
    record = {"title": milestone.title, "note": milestone.note, "turn": ctx.logical_turn}
    await ctx.plugin_data.set(NAMESPACE, key, record)
    return {"marked": True, "key": key}


def slug(title: str) -> str:
    """The letters and digits of a title in lower case, its words joined by dashes."""
    words = "".join(letter if letter.isalnum() else " " for letter in title.casefold()).split()
    return "-".join(words) or "untitled"


def register(host: Host) -> None:
    """Offer the tool; a person is asked before every call."""
    host.register_tool(
        name="mark-milestone",
        description="Record a turning point of the story. The player is asked before it is recorded.",
        parameters=Milestone,
        handler=mark_milestone,
        risk="write",
        needs_approval=True,
    )
