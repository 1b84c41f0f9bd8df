"""The seats of hooks: each at its place, and none of them costs anything while it is empty."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any, get_args

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from kernel.errors import Code
from kernel.schedule.hooks import Event
from kernel.wire import names
from kernel.wire.hooks import HookSubscription
from kernel.wire.ids import agent_workflow
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import story_with
from tests.support.rig import Rig, rig
from tests.turns.builders import entry, tool
from workflows.seats import seat

TALE = story_with("{plugin: [act]}", entry(tool("act", 'return "done"')), "  tools: [act]\n")


@pytest.mark.parametrize("event", get_args(Event))
async def test_a_seat_lets_everybody_pass_but_who_is_subscribed(event: Any) -> None:
    others = [HookSubscription(package_id="spy", event=other) for other in get_args(Event) if other != event]
    await seat(others, event)
    with pytest.raises(ApplicationError) as refused:
        await seat([HookSubscription(package_id="spy", event=event)], event)
    assert refused.value.type == Code.NOT_SUPPORTED


@pytest.mark.slow
async def test_an_agent_has_a_seat_before_and_after_each_model_and_tool_call(tmp_path: Path) -> None:
    model = ModelServer([Reply(tool_calls=[Call(name="act", arguments="{}")]), Reply(text="Done.")])
    async with rig(tmp_path, packages={"tale": TALE}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        await session.result(receipt)
        given = await _input(r.client, agent_workflow(receipt["turn_id"], "tale"))
        assert "hooks" not in given
        # What the run bought stands in the store: once more, it pays nothing.
        places = {"PreLLMCall": 0, "PostLLMResponse": 1, "PreToolUse": 1, "PostToolUse": 2}
        assert {event: await _activities_before(r, given, event) for event in places} == places
        model.assert_calls(2)


async def _activities_before(r: Rig, given: dict[str, Any], event: str) -> int:
    """Run an agent that somebody hooks: how many activities it scheduled until it came to the seat."""
    hooks = [{"package_id": "spy", "event": event}]
    handle = await r.client.start_workflow(
        names.AGENT,
        {**given, "hooks": hooks},
        id=f"agent/{uuid.uuid4().hex}/tale",
        task_queue=r.settings.temporal.queue,
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.message) == (Code.NOT_SUPPORTED, f"spy hooks {event}")
    scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    return len([e async for e in handle.fetch_history_events() if e.event_type == scheduled])


async def _input(client: Client, workflow_id: str) -> dict[str, Any]:
    """What a workflow was started with."""
    async for event in client.get_workflow_handle(workflow_id).fetch_history_events():
        [payload] = event.workflow_execution_started_event_attributes.input.payloads
        return dict(json.loads(payload.data))
    raise AssertionError(workflow_id)
