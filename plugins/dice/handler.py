"""Rolls the die of the turn."""

from __future__ import annotations

from turnwright.sdk import FunctionContext, Json

SIDES = 20


async def handler(ctx: FunctionContext) -> Json:
    """Roll once; the numbers are seeded, so a retried run rolls the same."""
    roll = {"roll": ctx.random.int(1, SIDES + 1), "sides": SIDES}
    return {
        "outcome": "success",
        "value": roll,
        "effects": {
            "events": [{"topic": "dice.rolled", "payload": roll}],
            "statePatches": [{"path": "/dice", "ops": [{"op": "inc", "path": "/rolls", "by": 1}]}],
        },
    }
