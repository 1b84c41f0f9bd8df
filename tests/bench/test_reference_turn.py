"""The reference turn's history, frozen: exact events and exact payload bytes, like a golden file.

The server's own `history_size_bytes` counts the identity of worker and client and times as they happen to be
written, so it differs between machines. Counted here is what we put into history: the data of every payload
in every event of Session (what the turn added), Turn and Agent. Left out is the SDK's own record of a local
activity, in each marker under `data`: it holds times. Every id that stands in a payload has a fixed length.

A number that changed is a change of what a turn costs: explain it in the change log and write it down here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent

from bench import script
from bench.product import NOTES, NOTES_MANIFEST, Session
from kernel.wire.ids import agent_workflow, session_workflow, turn_workflow
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.rig import Rig, rig

pytestmark = pytest.mark.slow


REFERENCE = {
    "session": {"events": 15, "payloads": 11, "bytes": 873},
    "turn": {"events": 17, "payloads": 18, "bytes": 1988},
    "agent": {"events": 81, "payloads": 59, "bytes": 4731},
}


async def test_the_reference_turn_costs_exactly_this(tmp_path: Path) -> None:
    assert await _cost(tmp_path, script.SMALL) == REFERENCE


async def test_large_tool_results_leave_history_as_it_is(tmp_path: Path) -> None:
    cost = await _cost(tmp_path, script.LARGE)
    assert cost["agent"] == REFERENCE["agent"]
    # What differs is the length of the player's text, and the receipt's count of 2 records instead of 10.
    longer = len(script.LARGE) - len(script.SMALL)
    assert cost["session"]["bytes"] == REFERENCE["session"]["bytes"] + longer - 1
    assert cost["turn"]["bytes"] == REFERENCE["turn"]["bytes"] - 2


async def _cost(home: Path, text: str) -> dict[str, dict[str, int]]:
    model = ModelServer([_reply(text, done) for done in range(script.ROUNDS + 1)])
    async with rig(home, packages={NOTES: {"PLUGIN.md": NOTES_MANIFEST}}, model=model) as r:
        session = await Session.open(r.client, r.settings.temporal.queue)
        before = await session.until_quiet()
        turn_id = (await session.play(text))["turn_id"]
        await session.until_quiet()
        model.assert_calls(script.ROUNDS + 1)
        own, turn = session_workflow(session.session_id), turn_workflow(session.session_id, turn_id)
        return {
            "session": _counted((await _events(r, own))[before.events :]),
            "turn": _counted(await _events(r, turn)),
            "agent": _counted(await _events(r, agent_workflow(turn_id, NOTES))),
        }


def _reply(text: str, done: int) -> Reply:
    parts = script.answer((text + '"role": "tool"' * done).encode())
    calls = [Call(id=call.id, name=call.name, arguments=call.arguments) for call in parts.calls]
    return Reply(text=parts.text, tool_calls=calls, input_tokens=900, output_tokens=30)


async def _events(r: Rig, workflow_id: str) -> list[HistoryEvent]:
    return list((await r.client.get_workflow_handle(workflow_id).fetch_history()).events)


def _counted(events: list[HistoryEvent]) -> dict[str, int]:
    payloads = [payload for event in events for payload in _payloads(event)]
    return {
        "events": len(events),
        "payloads": len(payloads),
        "bytes": sum(len(payload.data) for payload in payloads),
    }


def _payloads(message: Any) -> Iterator[Payload]:
    """Every payload inside a message, but the SDK's own record in markers."""
    if isinstance(message, Payload):
        yield message
    elif isinstance(message, Message):
        for field, value in message.ListFields():
            if field.message_type is not None:
                yield from _inside(field, value)


def _inside(field: Any, value: Any) -> Iterator[Payload]:
    if field.message_type.GetOptions().map_entry:
        for key in sorted(value):
            if not (field.name == "details" and key == "data"):
                yield from _payloads(value[key])
    elif isinstance(value, Message):
        yield from _payloads(value)
    else:
        for one in value:
            yield from _payloads(one)
