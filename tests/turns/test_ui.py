"""What the Temporal UI shows, read back through the API: summaries, details, attributes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from client.api import Turnwright
from kernel.errors import TurnwrightError
from kernel.wire import names
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import function, story_with
from tests.support.rig import Rig, SessionDriver, rig
from tests.turns.builders import OK, Fn, entry, package, tool, until

pytestmark = pytest.mark.slow

SCHEMA = '{"type": "object"}'
TALE = story_with(
    "{plugin: [act, look]}",
    entry(tool("act", "return 1", SCHEMA, needs_approval=True), tool("look", "return 2", SCHEMA)),
    "  tools: [{ name: act, needsApproval: true }, look]\n",
)
WORK = package(
    roll=Fn("{stage: pre-turn}"),
    count=Fn(
        "{stage: post-turn, detached: {settle: true}}", more='effects: { writes: ["plugin-data:self:n"] }\n'
    ),
)
REPLIES = [
    Reply(tool_calls=[Call(name="act", id="a"), Call(name="look", id="b")]),
    Reply(text="It rains."),
]


def text(payload: Payload) -> str:
    return payload.data.decode().strip('"')


async def summaries(handle: WorkflowHandle[Any, Any], kind: Any) -> list[str]:
    """The summaries of a history's events of one kind."""
    history = await handle.fetch_history()
    return [text(event.user_metadata.summary) for event in history.events if event.event_type == kind]


async def attributes(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    described = await handle.describe()
    found = {pair.key.name: pair.value for pair in described.typed_search_attributes}
    return {name: value for name, value in found.items() if name in names.ATTRIBUTES}


@pytest.fixture
async def played(tmp_path: Path) -> AsyncIterator[tuple[Rig, SessionDriver, dict[str, Any]]]:
    """A turn with an approval, a tool, a function and a job, just finished."""
    async with rig(tmp_path, packages={"tale": TALE, "work": WORK}, model=ModelServer(REPLIES)) as r:
        session = await r.session(packages=["tale", "work"])
        receipt = await session.submit("go")
        state = await session.until(lambda state: state["approvals"])
        await session.update(names.RESOLVE, {"ref": state["approvals"][0]["ref"], "decision": "approve"})
        result = await session.result(receipt)
        await session.until(lambda state: state["running"] is None and not state["jobs"])
        yield r, session, result


Played = tuple[Rig, SessionDriver, dict[str, Any]]


async def test_every_activity_has_a_summary_that_says_who_and_what(played: Played) -> None:
    r, session, result = played
    agent = r.client.get_workflow_handle(f"agent/{result['turn_id']}/tale")
    scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    assert await summaries(agent, scheduled) == [
        "tale · model call 1",
        "tale · look",
        "tale · act",
        "tale · model call 2",
    ]
    assert await summaries(session.turn(result["turn_id"]), scheduled) == ["pre-turn · work/roll"]
    job = r.client.get_workflow_handle(f"job/{result['jobs'][0]['job_id']}")
    assert await summaries(job, scheduled) == ["work/count · job"]
    told = ["open session", "approval open: act", "approval approved: act"]
    assert await summaries(session.handle, scheduled) == told


async def test_every_local_activity_has_a_summary_too(played: Played) -> None:
    _, session, result = played
    marker = EventType.EVENT_TYPE_MARKER_RECORDED
    assert await summaries(session.turn(result["turn_id"]), marker) == ["open turn", "commit"]
    assert await summaries(session.handle, marker) == ["accept action"]


async def test_every_child_has_a_summary_and_details(played: Played) -> None:
    r, session, result = played
    turn_id, job_id = result["turn_id"], result["jobs"][0]["job_id"]
    for workflow_id, summary in [
        (f"turn/{session.session_id}/{turn_id}", f"turn {turn_id} of {session.session_id}"),
        (f"agent/{turn_id}/tale", "narrative · tale"),
        (f"job/{job_id}", f"work/count after turn {turn_id}"),
    ]:
        described = await r.client.get_workflow_handle(workflow_id).describe()
        assert await described.static_summary() == summary
        assert await described.static_details(), workflow_id
    started = EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
    assert await summaries(session.turn(turn_id), started) == ["narrative · tale"]


async def test_a_session_says_what_it_plays(tmp_path: Path) -> None:
    async with (
        rig(tmp_path, packages={"tale": TALE}, model=ModelServer(REPLIES)) as r,
        await Turnwright.connect(r.settings) as turnwright,
    ):
        await turnwright.new_session("night-train", ["tale"])
        described = await r.client.get_workflow_handle("session/night-train").describe()
        assert await described.static_summary() == "session night-train"
        assert await described.static_details() == "packages: tale"


async def test_the_status_of_a_session_says_how_far_its_opening_came(tmp_path: Path) -> None:
    broken = {**function(OK), "handler.py": "from nothing_of_that_name import handler\n"}
    async with (
        rig(tmp_path, packages={"broken": broken}, start_worker=False) as r,
        await Turnwright.connect(r.settings) as turnwright,
    ):
        opening = asyncio.ensure_future(turnwright.new_session("never-opens", ["broken"]))
        handle = r.client.get_workflow_handle("session/never-opens")

        async def status() -> str | None:
            try:
                return (await attributes(handle)).get(names.ATTRIBUTE_STATUS)
            except RPCError:
                return None  # not started yet

        found = [await until(status, bool)]
        async with r.polling():
            with pytest.raises(TurnwrightError, match="nothing_of_that_name"):
                await opening
        found.append(await until(status, lambda now: now not in found))
    assert found == ["opening", "failed"]
    document = (Path(__file__).parents[2] / "docs" / "temporal-interface.md").read_text()
    (row,) = (line for line in document.splitlines() if line.startswith("| `TurnwrightStatus` | Session |"))
    assert [f"`{one}`" in row for one in found] == [True, True]


async def test_a_timer_says_what_it_waits_for(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer(REPLIES)) as r:
        session = await r.session(packages=["tale"])
        await session.submit("go")

        async def timers() -> list[str]:
            return await summaries(session.handle, EventType.EVENT_TYPE_TIMER_STARTED)

        told = await until(timers, bool)  # the deadline of the approval that nobody answers
        assert set(told) == {"next deadline"}


async def test_the_turn_shows_its_nodes_as_a_table(played: Played) -> None:
    _, session, result = played
    details = await current_details(session.turn(result["turn_id"]))
    assert details.startswith("**committed**, logical turn 1")
    rows = [line for line in details.splitlines() if line.startswith("| ")]
    assert rows[0].startswith("| stage | runtime | state |")
    assert [row.split(" | ")[:3] for row in rows[2:]] == [
        ["| pre-turn", "work/roll", "success"],
        ["| narrative", "tale", "success"],
        ["| post-turn", "work/count", "deferred"],
    ]
    assert rows[3].split(" | ")[4:6] == ["2", "30"]


async def test_the_session_shows_where_it_stands(played: Played) -> None:
    _, session, _ = played

    async def details() -> str:
        return await current_details(session.handle)

    shown = await until(details, lambda shown: "running turn: none" in shown)
    assert shown.startswith("**active**, 1 turns committed")
    assert "jobs: 0" in shown


async def test_search_attributes_name_session_turn_and_status(played: Played) -> None:
    r, session, result = played
    own = {names.ATTRIBUTE_SESSION: session.session_id}
    turn = {**own, names.ATTRIBUTE_TURN: result["turn_id"]}
    assert await attributes(session.handle) == {**own, names.ATTRIBUTE_STATUS: "active"}
    assert await attributes(session.turn(result["turn_id"])) == {**turn, names.ATTRIBUTE_STATUS: "committed"}
    assert await attributes(r.client.get_workflow_handle(f"agent/{result['turn_id']}/tale")) == turn
    job = r.client.get_workflow_handle(f"job/{result['jobs'][0]['job_id']}")
    assert await attributes(job) == {**turn, names.ATTRIBUTE_STATUS: "succeeded"}


async def test_everything_of_a_session_is_found_by_its_attribute(played: Played) -> None:
    r, session, _ = played
    query = f"{names.ATTRIBUTE_SESSION} = '{session.session_id}'"

    async def found() -> list[str]:
        return sorted([workflow.workflow_type async for workflow in r.client.list_workflows(query)])

    assert await until(found, lambda types: len(types) == 4) == ["Agent", "Job", "Session", "Turn"]


async def test_the_waiting_agent_says_what_it_waits_for(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer(REPLIES)) as r:
        session = await r.session(packages=["tale"])
        await session.submit("go")
        state = await session.until(lambda state: state["approvals"])
        (approval,) = state["approvals"]
        agent = r.client.get_workflow_handle(approval["workflow_id"])
        assert await current_details(agent) == f"waits for approval `{approval['ref']}`"

        async def details() -> str:
            return await current_details(session.handle)

        shown = await until(details, lambda shown: "approval" in shown)
        assert f"- approval `{approval['ref']}`: act of tale" in shown


async def test_a_failed_node_shows_its_reason_in_the_table(tmp_path: Path) -> None:
    work = package(bad=Fn("{stage: pre-turn}", "raise ValueError('a | b')"), good=Fn("{stage: pre-turn}", OK))
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        rows = (await current_details(session.turn(result["turn_id"]))).splitlines()
        (row,) = [row for row in rows if "work/bad" in row]
        assert "runtime.failed" in row
        assert "a \\| b" in row


async def current_details(handle: WorkflowHandle[Any, Any]) -> str:
    """As the UI asks for them."""
    metadata = await asyncio.wait_for(handle.query("__temporal_workflow_metadata"), 10)
    return str(metadata.current_details)
