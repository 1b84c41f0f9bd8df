"""The Temporal server is killed in the middle of a turn, and comes back with what it had written."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from link.dev_server import start_dev_server
from tests.crashes import reference
from tests.crashes.stage import stage, usage_of_nodes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PLAYER = "I open the gate."


@pytest.mark.parametrize("held", ["Name one omen.", "tool_call_id"], ids=["function", "story"])
async def test_a_turn_survives_the_death_of_the_server(held: str, url: str, tmp_path: Path) -> None:
    model, trace = reference.model(), tmp_path / "trace"
    for reply in model.script:
        reply.hold = reply.when == held
    server = await start_dev_server(tmp_path / "temporal", ui=False)
    port = int(server.address.rpartition(":")[2])
    try:
        async with stage(
            tmp_path,
            packages=reference.packages(trace),
            model=model,
            url=url,
            TURNWRIGHT_ADDRESS=server.address,
        ) as here:
            pair = await here.pair()
            session = await pair.session(reference.PACKAGES)
            receipt = await session.submit(PLAYER)
            await model.held.wait()
            os.killpg(server.pid, signal.SIGKILL)
            await server.close()
            model.release()
            server = await start_dev_server(tmp_path / "temporal", ui=False, port=port)
            result = await session.result(receipt, timeout_s=90)
            assert result["status"] == "committed"
            assert await reference.committed(here.rig.store, session.session_id) == reference.expected(PLAYER)
            assert len({call.idempotency_key for call in model.calls}) == 3
            model.assert_calls(3)
            usage = result["usage"]
            assert (usage["calls"], usage.get("unknown", 0)) == (3, 0)
            assert await usage_of_nodes(session, receipt["turn_id"]) == 3
    finally:
        await server.close()
