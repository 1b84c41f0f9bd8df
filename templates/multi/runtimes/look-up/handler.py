"""Looks up the notes that hold a word."""

from __future__ import annotations

from turnwright.sdk import FunctionContext, Json


async def handler(ctx: FunctionContext) -> Json:
    """Answer with the notes that hold the word of the payload, in the order of their keys."""
    word = ctx.manual_payload["word"].casefold()
    found = []
    after: str | None = None
    while page := await ctx.plugin_data.list("notes", after=after):
        found += [record["value"]["note"] for record in page if word in record["value"]["note"].casefold()]
        after = page[-1]["key"]
    return {"outcome": "success", "value": {"notes": found}}
