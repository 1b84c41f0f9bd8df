"""Counts what is known, after the turn."""

from __future__ import annotations

from collections import Counter

from turnwright.sdk import FunctionContext, Json

from ...facts import records


async def handler(ctx: FunctionContext) -> Json:
    """Keep one record up to date; the same facts give the same digest."""
    kept = facts = 0
    speakers: Counter[str] = Counter()
    async for record in records(ctx.plugin_data):
        ctx.signal.throw_if_aborted()
        kept += 1
        facts += len(record["value"]["facts"])
        speakers.update(fact["speaker"] for fact in record["value"]["facts"] if "speaker" in fact)
    digest = {
        "turn": ctx.logical_turn,
        "records": kept,
        "facts": facts,
        "speakers": dict(sorted(speakers.items())),
    }
    return {
        "outcome": "success",
        "value": digest,
        "effects": {"pluginData": [{"namespace": "digest", "key": "latest", "value": digest}]},
    }
