"""Looks facts up by the words they hold."""

from __future__ import annotations

from turnwright.sdk import FunctionContext, Json

from ...facts import records

DEFAULT_LIMIT = 20


async def handler(ctx: FunctionContext) -> Json:
    """Answer with the facts that hold every word of the payload's text; an empty text matches all."""
    words = ctx.manual_payload["text"].casefold().split()
    limit = ctx.manual_payload.get("limit", DEFAULT_LIMIT)
    found = []
    async for record in records(ctx.plugin_data):
        for fact in record["value"]["facts"]:
            said = f"{fact.get('speaker', '')} {fact['text']}".casefold()
            if all(word in said for word in words):
                found.append({"key": record["key"], **fact})
    return {"outcome": "success", "value": {"matches": found[:limit], "total": len(found)}}
