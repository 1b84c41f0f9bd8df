"""A worker that was only frozen wakes up when its work was done elsewhere, and changes nothing."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from store import transcripts
from tests.crashes import reference
from tests.crashes.stage import stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PLAYER = "I open the gate."


async def test_a_reply_that_comes_to_a_late_worker_is_dropped(url: str, tmp_path: Path) -> None:
    model, trace = reference.model(), tmp_path / "trace"
    first = next(reply for reply in model.script if reply.when == "Tell the story.")
    model.put_first(first.model_copy(update={"hold": True, "times": 1, "when": "Tell the story."}))
    async with stage(tmp_path, packages=reference.packages(trace), model=model, url=url) as here:
        pair = await here.pair(full=False)
        late = await pair.start()
        session = await pair.session(reference.PACKAGES)
        receipt = await session.submit(PLAYER)
        turn_id = receipt["turn_id"]
        await model.held.wait()
        late.send(signal.SIGSTOP)
        await pair.start()
        result = await session.result(receipt, timeout_s=60)
        assert result["status"] == "committed"
        assert (result["usage"]["calls"], result["usage"]["unknown"]) == (4, 1)
        model.release()
        late.send(signal.SIGCONT)

        late.send(signal.SIGTERM)
        assert await late.died == 0
        async with here.rig.store.read() as conn:
            entries = await transcripts.load(conn, turn_id, "tale")
        assert [(entry.step, entry.role) for entry in entries] == [
            (0, "prompt"),
            (1, "assistant"),
            (2, "assistant"),
        ]
        assert await reference.committed(here.rig.store, session.session_id) == reference.expected(PLAYER)
        model.assert_calls(4)
