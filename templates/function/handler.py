"""Draws the weather of the turn."""

from __future__ import annotations

from turnwright.sdk import FunctionContext, Json

WEATHERS = ("fog", "rain", "a clear sky", "a storm far away")


async def handler(ctx: FunctionContext) -> Json:
    """Draw once; the numbers are seeded, so a run that is repeated draws the same."""
    weather = {"weather": WEATHERS[ctx.random.int(0, len(WEATHERS))], "turn": ctx.logical_turn}
    await ctx.plugin_data.set("weather", f"turn-{ctx.logical_turn:05}", weather)
    return {"outcome": "success", "value": weather}
