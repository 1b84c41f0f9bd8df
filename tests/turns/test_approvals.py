"""Approvals: a person answers, and the call of a waiting agent runs or does not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from kernel.errors import Code
from kernel.session.state import MAX_APPROVALS
from kernel.wire import names
from kernel.wire.ids import session_workflow
from link.connect import connect
from store import approvals
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import story_with
from tests.support.rig import Rig, SessionDriver, rig
from tests.turns.builders import answers, entry, records, tool, until

pytestmark = pytest.mark.slow

ACT = 'await ctx.plugin_data.set("done", args["what"], 1)\nreturn "did " + args["what"]'
SCHEMA = '{"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}'
TALE = story_with(
    "{plugin: [act]}",
    entry(tool("act", ACT, SCHEMA, needs_approval=True, risk="write")),
    "  tools: [{ name: act, needsApproval: true, risk: write }]\n  data: { done: { description: Deeds. } }\n",
)
END = Reply(text="Done.")


def acts(*what: str) -> Reply:
    return Reply(tool_calls=[Call(name="act", arguments=f'{{"what": "{one}"}}', id=one) for one in what])


async def asked_for(session: SessionDriver, count: int = 1) -> dict[str, str]:
    """Wait for `count` open approvals; refs by what they ask."""
    state = await session.until(lambda state: len(opened(state)) == count)
    return {approval["arguments"].split('"')[3]: approval["ref"] for approval in opened(state)}


def opened(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [approval for approval in state["approvals"] if approval["status"] == "open"]


async def resolve(session: SessionDriver, ref: str, decision: str, **more: str) -> str:
    answer = await session.update(names.RESOLVE, {"ref": ref, "decision": decision, **more})
    return str(answer["outcome"])


async def waiting_for(client: Client, query: str) -> list[str]:
    """Ids of running workflows that the visibility store lists for a query."""
    listed = client.list_workflows(f"{query} AND ExecutionStatus = 'Running'")
    return sorted([found.id async for found in listed])


async def eventually(look: Any, expected: Any, timeout_s: float = 10.0) -> None:
    """Visibility is written behind the workflow: look until it shows `expected`."""
    await until(look, lambda found: found == expected, timeout_s)


async def inbox(r: Rig, session: SessionDriver) -> dict[str, str]:
    async with r.store.read() as conn:
        found = await approvals.list_approvals(conn, session_id=session.session_id, status=None)
    return {approval.ref: approval.status for approval in found}


async def test_an_open_approval_shows_in_the_state_the_inbox_and_the_search_attributes(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        (approval,) = opened(await session.state())
        assert (approval["tool"], approval["runtime_id"]) == ("act", "tale")
        assert approval["turn_id"] == receipt["turn_id"]
        agent = approval["workflow_id"]
        query = f"{names.ATTRIBUTE_WAITING_FOR} = '{ref}'"
        await eventually(lambda: waiting_for(r.client, query), sorted([agent, session.handle.id]))
        await eventually(lambda: inbox(r, session), {ref: "open"})
        async with r.store.read() as conn:
            stored = await approvals.get(conn, ref)
        assert stored is not None
        assert "jump" in str(stored.arguments)
        assert await resolve(session, ref, "approve", note="fine", actor="ada") == "applied"
        await session.result(receipt)
        await eventually(lambda: waiting_for(r.client, query), [])
        await eventually(lambda: inbox(r, session), {ref: "approved"})
        async with r.store.read() as conn:
            stored = await approvals.get(conn, ref)
        assert stored is not None
        assert (stored.note, stored.actor) == ("fine", "ada")


async def test_an_approved_call_runs_once_and_commits(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        await resolve(session, (await asked_for(session))["jump"], "approve")
        assert (await session.result(receipt))["status"] == "committed"
        assert await records(r, session, "tale", "done") == {"jump": 1}
        assert answers(r, 2) == ['"did jump"']
        r.model.assert_calls(2)


async def test_a_denial_is_a_result_that_the_model_sees(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        await resolve(session, (await asked_for(session))["jump"], "deny", note="Too high.")
        assert (await session.result(receipt))["status"] == "committed"
        assert await records(r, session, "tale", "done") == {}
        assert "tool.denied" in answers(r, 2)[0]
        assert "Too high." in answers(r, 2)[0]


async def test_a_call_past_the_cap_of_open_approvals_is_refused_by_name_and_asks_nobody(
    tmp_path: Path,
) -> None:
    calls = [f"c{number:02}" for number in range(MAX_APPROVALS + 1)]
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts(*calls), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        refs = await asked_for(session, MAX_APPROVALS)
        for ref in refs.values():
            assert await resolve(session, ref, "deny") == "applied"
        assert (await session.result(receipt))["status"] == "committed"
        [refused] = [answer for answer in answers(r, 2) if Code.SESSION_QUEUE_FULL in answer]
        assert "64 questions of this session are open" in refused
        assert set(await inbox(r, session)) == set(refs.values())


async def test_a_plain_signal_answers_as_the_update_does(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        await session.handle.signal(names.RESOLVE, {"ref": ref, "decision": "approve"})
        assert (await session.result(receipt))["status"] == "committed"
        assert await records(r, session, "tale", "done") == {"jump": 1}


async def test_e1_answers_in_crossed_order_each_reach_their_own_call(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("a", "b"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        refs = await asked_for(session, 2)
        await resolve(session, refs["b"], "approve")
        await resolve(session, refs["a"], "deny")
        await session.result(receipt)
        assert await records(r, session, "tale", "done") == {"b": 1}
        denied, done = answers(r, 2)
        assert "tool.denied" in denied
        assert done == '"did b"'


async def test_e2_three_gated_calls_of_one_reply_are_all_asked_for_at_once(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("a", "b", "c"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        refs = await asked_for(session, 3)
        await eventually(lambda: inbox(r, session), dict.fromkeys(sorted(refs.values()), "open"))
        for ref in refs.values():
            await resolve(session, ref, "approve")
        await session.result(receipt)
        assert sorted(await records(r, session, "tale", "done")) == ["a", "b", "c"]


async def test_e3_the_second_answer_to_one_approval_is_superseded(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        assert await resolve(session, ref, "deny") == "applied"
        assert await resolve(session, ref, "approve") == "superseded"
        await session.result(receipt)
        assert await resolve(session, ref, "approve") == "superseded"
        assert await records(r, session, "tale", "done") == {}
        assert (await inbox(r, session))[ref] == "denied"


async def test_e7_a_brand_new_client_answers_with_the_session_and_the_ref_alone(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        stranger = (await connect(r.settings)).get_workflow_handle(session_workflow(session.session_id))
        await stranger.execute_update(names.RESOLVE, {"ref": ref, "decision": "approve"})
        assert (await session.result(receipt))["status"] == "committed"


async def test_e9_an_answer_before_anything_is_asked_is_dropped_and_harms_nothing(tmp_path: Path) -> None:
    model = ModelServer([acts("jump"), END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model, start_worker=False) as r:
        early = {"ref": "a0", "decision": "approve"}
        handle = await r.client.start_workflow(
            names.SESSION,
            {"session_id": "early", "packages": ["tale"]},
            id=session_workflow("early"),
            task_queue=r.settings.temporal.queue,
            start_signal=names.RESOLVE,
            start_signal_args=[early],
        )
        async with r.polling():
            session = SessionDriver(r, "early", handle)
            receipt = await session.submit("go")
            await resolve(session, (await asked_for(session))["jump"], "approve")
            assert (await session.result(receipt))["status"] == "committed"


async def test_an_unknown_ref_is_rejected_by_name(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}) as r:
        session = await r.session(packages=["tale"])
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await resolve(session, "a0", "approve")
        assert isinstance(refused.value.cause, ApplicationError)
        assert refused.value.cause.type == "approval.unknown"


async def test_past_its_deadline_a_call_is_not_executed_and_counts_as_expired(tmp_path: Path) -> None:
    model = ModelServer([acts("jump"), END])
    async with rig(tmp_path, packages={"tale": TALE}, model=model, TURNWRIGHT_APPROVAL_DEADLINE_S="1") as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        assert (await session.result(receipt, timeout_s=15))["status"] == "committed"
        assert await records(r, session, "tale", "done") == {}
        assert "tool.expired" in answers(r, 2)[0]
        assert await resolve(session, ref, "approve") == "superseded"
        await eventually(lambda: inbox(r, session), {ref: "expired"})


async def test_a_stop_while_a_person_is_asked_withdraws_the_question(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        await session.update(names.CONTROL, {"action": "cancel-turn", "turn_id": receipt["turn_id"]})
        assert (await session.result(receipt))["status"] == "stopped"
        await eventually(lambda: inbox(r, session), {ref: "withdrawn"})
        assert await resolve(session, ref, "approve") == "superseded"
        assert await records(r, session, "tale", "done") == {}
        r.model.assert_calls(1)
        agent = r.client.get_workflow_handle(f"agent/{receipt['turn_id']}/tale")
        attributes = (await agent.describe()).typed_search_attributes
        assert names.ATTRIBUTE_WAITING_FOR not in {pair.key.name for pair in attributes}


async def test_a_terminated_turn_withdraws_its_questions_and_ends_its_agents(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        agent = r.client.get_workflow_handle(opened(await session.state())[0]["workflow_id"])
        await session.turn(receipt["turn_id"]).terminate("by a test")
        await eventually(lambda: inbox(r, session), {ref: "withdrawn"})

        async def ended() -> bool:
            return (await agent.describe()).status == WorkflowExecutionStatus.CANCELED

        await eventually(ended, True)
        assert (await session.play("again"))["story"]["text"] == "Done."


async def test_the_wait_for_a_person_does_not_count_against_the_runs_time(tmp_path: Path) -> None:
    tale = {
        **TALE,
        "PLUGIN.md": TALE["PLUGIN.md"].replace("---\nTell", "    loop: { timeoutMs: 3000 }\n---\nTell"),
    }
    async with rig(tmp_path, packages={"tale": tale}, model=ModelServer([acts("jump"), END])) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        ref = (await asked_for(session))["jump"]
        (approval,) = opened(await session.state())
        over = approval["opened_at"] + 3.0  # all the time that the run has, and none of it may count
        await session.until(lambda state: time.time() > over)
        await resolve(session, ref, "approve")
        assert (await session.result(receipt))["status"] == "committed"


async def test_a_session_that_starts_anew_stops_the_turn_and_closes_the_question_of_the_lost_one(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, packages={"tale": TALE}, model=ModelServer([acts("dig"), END])) as r:
        session = await r.session("lost", packages=["tale"])
        receipt = await session.submit("go")
        (ref,) = (await asked_for(session)).values()
        await session.handle.terminate("by a test")
        again = await r.session("lost", packages=["tale"])
        assert (await again.result(receipt))["status"] == "stopped"
        await eventually(lambda: inbox(r, again), {ref: "withdrawn"})
        assert (await again.play("on"))["status"] == "committed"
