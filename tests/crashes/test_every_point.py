"""A worker is killed at every point of a turn, and the books are exact afterwards."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.crashes import reference
from tests.crashes.points import NOBODY, POINTS, Cost, read_table
from tests.crashes.stage import Pair, Stage, lanes, stage, usage_of_nodes
from tests.support.crash_worker import Point, arm
from tests.support.rig import SessionDriver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLAYER = "I open the gate."


def test_the_document_names_every_point_in_order() -> None:
    assert list(read_table()) == list(POINTS)


async def test_a_turn_survives_a_kill_at_every_point(url: str, tmp_path: Path) -> None:
    trace, measured, seconds = tmp_path / "trace", dict[str, Cost](), dict[str, float]()
    waiting = list(POINTS)

    async def lane(here: Stage) -> None:
        pair = await here.pair()
        while waiting:
            name = waiting.pop(0)
            measured[name], seconds[name] = await _play(pair, POINTS[name], trace)

    async with stage(tmp_path, packages=reference.packages(trace), model=reference.model(), url=url) as here:
        await asyncio.gather(*(lane(here) for _ in range(min(lanes(), len(POINTS)))))
    for name in POINTS:
        print(f"| {name} | {measured[name].row} |  after {seconds[name]:.1f} s")
    assert measured == read_table()


async def _play(pair: Pair, point: Point | None, trace: Path) -> tuple[Cost, float]:
    """Play the turn in a session of its own; returns what it cost, and how long it took after the kill."""
    r = pair.rig
    session = await pair.session(reference.PACKAGES)
    armed = arm(r.home, session.session_id, point) if point else None
    receipt = await session.submit(PLAYER)
    turn_id, before, killed = receipt["turn_id"], 0, time.monotonic()
    replacing = None
    if point:
        died = await pair.death()
        before, killed = len(reference.calls_of(r.model, turn_id)), time.monotonic()
        assert died.died.result() == -9
        replacing = asyncio.create_task(pair.fill())
    result = await session.result(receipt, timeout_s=60)
    took = time.monotonic() - killed
    assert armed is None or not armed.exists()
    assert result["status"] == "committed", json.dumps(result, indent=1)
    assert await reference.committed(r.store, session.session_id) == reference.expected(PLAYER)
    _check_calls(session, turn_id)
    usage = result["usage"]
    assert await usage_of_nodes(session, turn_id) == usage["calls"]
    await session.update("control", {"action": "end"})
    if replacing:
        await replacing
    ran = reference.started(trace, session.session_id)
    sent = len(reference.calls_of(r.model, turn_id))
    return Cost(
        before=before if point else sent,
        sent=sent,
        counted=usage["calls"],
        unknown=usage.get("unknown", 0),
        handler=ran["handler"],
        carve=ran["carve"],
        mark=ran["mark"],
    ), took


def _check_calls(session: SessionDriver, turn_id: str) -> None:
    """A call that is sent again is the same call under the same key."""
    calls = reference.calls_of(session.rig.model, turn_id)
    bodies = {(call.idempotency_key, call.raw_body) for call in calls}
    keys = Counter(key for key, _ in bodies)
    assert len(keys) == 3
    assert set(keys.values()) == {1}


def test_a_kill_costs_at_most_one_call() -> None:
    table = read_table()
    for cost in table.values():
        assert cost.sent - table[NOBODY].sent in (0, 1)
        assert cost.counted == table[NOBODY].counted + cost.unknown
