"""The session: one writer, one order, nothing lost and nothing twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from kernel.wire import names
from kernel.wire.ids import session_workflow
from link.dev_server import start_dev_server
from store import calls, interjections, messages, sessions, turns
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function
from tests.support.rig import Rig, SessionDriver, rig
from tests.turns.builders import OK, asked, meet, records, until

pytestmark = pytest.mark.slow

COUNT = (
    'n = await ctx.plugin_data.get("notes", "n") or 0\nawait ctx.plugin_data.set("notes", "n", n + 1)\n' + OK
)


def held(tmp_path: Path) -> dict[str, str]:
    """A package whose turn lasts until the test opens the gate."""
    file = str(tmp_path / "gate")
    return function(f"while not Path({file!r}).exists():\n    await asyncio.sleep(0.01)\n{COUNT}")


def with_path(files: dict[str, str]) -> dict[str, str]:
    return {**files, "handler.py": "from pathlib import Path\n" + files["handler.py"]}


async def appears(file: Path) -> None:
    await until(lambda: asyncio.to_thread(file.exists), bool)


async def refused(session: SessionDriver, name: str, message: Any) -> str:
    """The code that an update is refused with."""
    with pytest.raises(WorkflowUpdateFailedError) as error:
        await session.update(name, message)
    assert isinstance(error.value.cause, ApplicationError)
    return str(error.value.cause.type)


async def said(r: Rig, session: SessionDriver) -> list[str]:
    async with r.store.read() as conn:
        return [m.text for m in await messages.list_all(conn, session.session_id) if m.role == "player"]


async def control(session: SessionDriver, action: str, **more: str) -> dict[str, Any]:
    return await session.update(names.CONTROL, {"action": action, **more})


# Order


async def test_two_sessions_run_at_once(tmp_path: Path) -> None:
    here = {
        name: with_path(function(meet(tmp_path, name, other) + OK))
        for name, other in [("a", "b"), ("b", "a")]
    }
    async with rig(tmp_path, packages=here) as r:
        first, second = await r.session(packages=["a"]), await r.session(packages=["b"])
        results = await asyncio.gather(first.play("go"), second.play("go"))
        assert [result["status"] for result in results] == ["committed", "committed"]


async def test_turns_of_one_session_run_one_after_another_in_the_order_of_acceptance(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="Rain.", times=0)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipts = [await session.submit(f"act {n}") for n in range(5)]
        results = [await session.result(receipt) for receipt in receipts]
        assert [result["logical_turn"] for result in results] == [1, 2, 3, 4, 5]
        assert await said(r, session) == [f"act {n}" for n in range(5)]
        assert [len(asked(r, n)) for n in range(1, 6)] == sorted(len(asked(r, n)) for n in range(1, 6))


async def test_e17_one_action_submitted_twice_is_one_turn(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": function(COUNT)}) as r:
        session = await r.session(packages=["work"])
        first = await session.submit("go", "same")
        await session.result(first)
        again = await session.submit("go", "same")
        assert again["turn_id"] == first["turn_id"]
        await session.play("other")
        assert await records(r, session, "work", "notes") == {"n": 2}
        assert await said(r, session) == ["go", "other"]


async def test_one_action_submitted_at_the_same_instant_is_one_turn(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": function(COUNT)}) as r:
        session = await r.session(packages=["work"])
        receipts = await asyncio.gather(*(session.submit("go", "same") for _ in range(5)))
        assert len({receipt["turn_id"] for receipt in receipts}) == 1
        await session.result(receipts[0])
        await session.play("other")
        assert await records(r, session, "work", "notes") == {"n": 2}


async def test_a_run_and_its_repeat_are_one_execution(tmp_path: Path) -> None:
    files = function(COUNT)
    files = {
        **files,
        "PLUGIN.md": files["PLUGIN.md"].replace("{ stage: pre-turn }", "{ trigger: { type: manual } }"),
    }
    async with rig(tmp_path, packages={"work": files}) as r:
        session = await r.session(packages=["work"])
        run = {"action_id": "m", "runtime_id": "work"}
        receipts = await asyncio.gather(*(session.update(names.RUN, run) for _ in range(3)))
        await session.result(receipts[0])
        await session.result(await session.update(names.RUN, {**run, "action_id": "m2"}))
        assert await records(r, session, "work", "notes") == {"n": 2}


# Life


async def test_a_paused_session_refuses_actions_and_holds_its_queue(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        running, queued = await session.submit("one"), await session.submit("two")
        await session.until(lambda state: state["running"])
        assert (await control(session, "pause"))["status"] == "paused"
        assert await refused(session, names.SUBMIT, {"action_id": "x", "text": "three"}) == "session.paused"
        (tmp_path / "gate").touch()
        assert (await session.result(running))["status"] == "committed"
        state = await session.until(lambda state: state["running"] is None)
        assert [action["turn_id"] for action in state["queue"]] == [queued["turn_id"]]
        await control(session, "resume")
        assert (await session.result(queued))["status"] == "committed"


async def test_the_store_knows_that_a_session_is_paused_or_ended(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": function(OK)}) as r:
        session = await r.session(packages=["work"])

        async def status() -> str:
            async with r.store.read() as conn:
                return (await sessions.require(conn, session.session_id)).status

        await session.play("go")
        await control(session, "pause")
        await until(status, lambda found: found == "paused")
        await control(session, "end")
        result = await session.handle.result()
        assert result["completed_player_turns"] == 1
        assert await status() == "ended"


class History(Interceptor):
    """Reads, whenever the store is told a session's status, which orders its history already holds."""

    def __init__(self) -> None:
        self.orders: list[list[str]] = []

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Told(next, self.orders)


class _Told(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, orders: list[list[str]]) -> None:
        super().__init__(next)
        self._orders = orders

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if (info := activity.info()).activity_type == names.CLOSE_SESSION:
            assert info.workflow_id
            history = await activity.client().get_workflow_handle(info.workflow_id).fetch_history()
            accepted = [
                event.workflow_execution_update_accepted_event_attributes.accepted_request.input
                for event in history.events
                if event.HasField("workflow_execution_update_accepted_event_attributes")
            ]
            found = [request.args.payloads[0].data.decode() for request in accepted]
            self._orders.append([json.loads(data).get("action", "") for data in found])
        return await super().execute_activity(input)


async def test_the_store_hears_only_of_orders_that_cannot_be_lost_any_more(tmp_path: Path) -> None:
    """A workflow task that fails forgets the updates that came in it, but not what it told the store."""
    history = History()
    async with rig(tmp_path, packages={"work": function(OK)}, interceptors=(history,)) as r:
        session = await r.session(packages=["work"])
        await session.play("go")
        await control(session, "pause")
        await until(lambda: asyncio.sleep(0, history.orders), bool)
        await control(session, "end")
        await session.handle.result()
    assert history.orders == [["", "pause"], ["", "pause", "end"]]


async def test_an_ended_session_stops_its_turn_and_drops_its_queue(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        running = await session.submit("one")
        await session.submit("two")
        await session.until(lambda state: state["running"])
        assert (await control(session, "end"))["ending"] is True
        assert (await session.result(running))["status"] == "stopped"
        await session.handle.result()
        assert await records(r, session, "work", "notes") == {}
        assert await said(r, session) == []


async def test_a_session_that_is_ending_refuses_actions_by_name(tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"while not Path({str(go)!r}).exists():\n        await asyncio.sleep(0.01)"
    slow = f"try:\n    await asyncio.sleep(60)\nfinally:\n    {wait}"
    async with rig(tmp_path, packages={"work": with_path(function(slow))}) as r:
        session = await r.session(packages=["work"])
        await session.submit("go")
        await session.until(lambda state: state["running"])
        await control(session, "end")
        assert await refused(session, names.SUBMIT, {"action_id": "x", "text": "more"}) == "session.ended"
        go.touch()
        await session.handle.result()


async def test_the_id_of_an_ended_session_is_not_used_again(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": function(OK)}) as r:
        session = await r.session("used", packages=["work"])
        await control(session, "end")
        await session.handle.result()
        again = await r.session("used", packages=["work"])
        with pytest.raises(WorkflowFailureError) as failed:
            await again.handle.result()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == "session.ended"


async def test_a_session_whose_packages_cannot_be_activated_fails_by_name(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        session = await r.session(packages=["nowhere"])
        with pytest.raises(WorkflowFailureError) as failed:
            await session.handle.result()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.type == "package.unknown"


async def test_an_id_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    """From a plain client too, whatever its length."""
    async with rig(tmp_path) as r:
        for bad in ("", " x", "x" * 201, "x" * 100_000, "ü" * 40):
            workflow_id = session_workflow(bad[:201]) if bad else "session/"
            handle = await r.client.start_workflow(
                names.SESSION, {"session_id": bad}, id=workflow_id, task_queue=r.settings.temporal.queue
            )
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
            assert isinstance(failed.value.cause, ApplicationError)
            assert failed.value.cause.type == "session.id-invalid", bad[:50]
        assert (await handle.query(names.STATE))["status"] == "failed"
        session = await r.session(packages=[])
        for name, field in ((names.SUBMIT, "action_id"), (names.INTERJECT, "interjection_id")):
            for bad in ("", "x" * 201):
                assert await refused(session, name, {field: bad, "text": "Hm."}) == "session.id-invalid"
        assert await refused(session, names.RUN, {"action_id": "", "runtime_id": "x"}) == "session.id-invalid"


async def test_a_full_queue_refuses_what_is_new_by_name(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        await session.submit("first")
        await session.until(lambda state: state["running"] and not state["queue"])
        receipts = [await session.submit(f"{n}") for n in range(16)]
        assert (
            await refused(session, names.SUBMIT, {"action_id": "x", "text": "more"}) == "session.queue-full"
        )
        (tmp_path / "gate").touch()
        assert [receipt["position"] for receipt in receipts] == list(range(1, 17))
        await session.result(receipts[-1], timeout_s=60)
        assert await records(r, session, "work", "notes") == {"n": 17}


# Stops


async def test_a_stop_cuts_the_model_call_and_commits_nothing(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="A long story.", hold=True), Reply(text="Another.")])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("go")
        await asyncio.wait_for(model.held.wait(), 10)
        await control(session, "cancel-turn", turn_id=receipt["turn_id"])
        result = await session.result(receipt)
        assert (result["status"], result["reason"]) == ("stopped", "turn.stopped")
        assert result["usage"]["calls"] == 1  # what was cut off is paid all the same
        await asyncio.wait_for(model.left.wait(), 5)
        assert await said(r, session) == []
        after = await session.play("again")
        assert (after["status"], after["story"]["text"], after["logical_turn"]) == (
            "committed",
            "Another.",
            1,
        )
        r.model.assert_calls(2)


async def test_a_stop_cuts_a_running_function(tmp_path: Path) -> None:
    started, file = tmp_path / "started", tmp_path / "cancelled"
    body = (
        f"Path({str(started)!r}).touch()\ntry:\n    await asyncio.sleep(60)\n"
        f"finally:\n    Path({str(file)!r}).touch()"
    )
    async with rig(tmp_path, packages={"work": with_path(function(body))}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.submit("go")
        await appears(started)
        await control(session, "cancel-turn")
        assert (await session.result(receipt, timeout_s=10))["status"] == "stopped"
        await appears(file)


async def test_a_queued_turn_that_is_cancelled_never_runs(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        await session.submit("one")
        queued, last = await session.submit("two"), await session.submit("three")
        await control(session, "cancel-turn", turn_id=queued["turn_id"])
        (tmp_path / "gate").touch()
        await session.result(last)
        assert await said(r, session) == ["one", "three"]
        assert (
            await refused(session, names.CONTROL, {"action": "cancel-turn", "turn_id": "t0"})
            == "turn.unknown"
        )


async def test_an_action_that_was_cancelled_in_the_queue_stays_cancelled_when_it_comes_again(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        await session.submit("one")
        queued = await session.submit("two", "same")
        await control(session, "cancel-turn", turn_id=queued["turn_id"])

        async def receipt() -> Any:
            async with r.store.read() as conn:
                turn = await turns.get_turn(conn, queued["turn_id"])
            return turn and turn.receipt

        assert (await until(receipt, bool))["status"] == "stopped"
        await session.handle.terminate("what it remembered of recent actions is gone with it")
        again = await r.session(session.session_id)
        assert (await again.submit("two", "same"))["turn_id"] == queued["turn_id"]
        await again.until(lambda state: state["queue"] == [])
        (tmp_path / "gate").touch()
        played = await again.play("three")
        assert played["logical_turn"] == 1
        heard = await again.until(
            lambda state: state["last_turn"]
        )  # after the client, who asks the turn itself
        assert heard["last_turn"]["turn_id"] == played["turn_id"]
        assert await said(r, again) == ["three"]


async def test_a_plain_cancel_of_the_turn_is_a_stop(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.submit("go")
        turn = session.turn(receipt["turn_id"])
        await session.until(lambda state: state["running"])
        await until(
            lambda: turn.query("graph"),
            lambda graph: graph["nodes"] and graph["nodes"][0]["status"] == "running",
        )
        await turn.cancel()
        assert (await session.result(receipt))["status"] == "stopped"
        (tmp_path / "gate").touch()
        assert (await session.play("again"))["status"] == "committed"
        assert await records(r, session, "work", "notes") == {"n": 1}


async def test_a_terminated_turn_leaves_a_notice_and_frees_the_session(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.submit("go")
        await session.until(lambda state: state["running"])
        await session.turn(receipt["turn_id"]).terminate("by a test")
        state = await session.until(lambda state: state["last_turn"])
        assert state["last_turn"]["status"] == "failed"
        assert state["notices"]
        (tmp_path / "gate").touch()
        assert (await session.play("again"))["status"] == "committed"


@pytest.mark.parametrize("moment", ["idle", "starting", "running"])
async def test_a_plain_cancel_of_the_session_ends_it_well(tmp_path: Path, moment: str) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        (tmp_path / "gate").touch()
        await session.play("first")
        (tmp_path / "gate").unlink()
        if moment != "idle":
            await session.submit("go")
        if moment == "running":
            await session.until(lambda state: state["running"])
        await session.handle.cancel()
        assert (await asyncio.wait_for(session.handle.result(), 15))["completed_player_turns"] == 1
        described = await session.handle.describe()
        assert described.status == WorkflowExecutionStatus.COMPLETED
        async with r.store.read() as conn:
            assert (await sessions.require(conn, session.session_id)).status == "ended"


# Configuration and steering


async def test_packages_change_from_the_next_turn_on(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path)), "more": function(OK)}) as r:
        session = await r.session(packages=["work"])
        running = await session.submit("one")
        await session.until(lambda state: state["running"])
        receipt = await session.update(names.CONFIGURE, {"packages": ["work", "more"]})
        (tmp_path / "gate").touch()
        assert [run["runtime_id"] for run in (await session.result(running))["runs"]] == ["work"]
        assert [run["runtime_id"] for run in (await session.play("two"))["runs"]] == ["more", "work"]
        assert (await session.state())["revision"] == receipt["revision"]


async def test_a_binding_sends_a_slots_calls_to_another_slot(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="Rain.", times=0)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        await session.update(names.CONFIGURE, {"bindings": {"story": "plugin"}})
        result = await session.play("go")
        async with r.store.read() as conn:
            assert [call.slot for call in await calls.list_calls(conn, result["turn_id"])] == ["plugin"]


async def test_the_locale_changes_from_the_next_turn_on(tmp_path: Path) -> None:
    body = 'await ctx.plugin_data.set("seen", f"t{ctx.logical_turn}", ctx.locale)\n' + OK
    async with rig(tmp_path, packages={"work": function(body)}) as r:
        session = await r.session(packages=["work"])
        await session.play("go")
        await session.update(names.CONFIGURE, {"locale": "zh"})
        await session.play("go")
        assert await records(r, session, "work", "seen") == {"t1": "en", "t2": "zh"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"packages": ["nowhere"]}, "package.unknown"),
        ({"bindings": {"story": "nowhere"}}, "model.unconfigured"),
    ],
)
async def test_a_configuration_that_cannot_be_applied_leaves_a_notice_and_the_old_one_in_force(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    async with rig(tmp_path, packages={"work": function(OK)}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.update(names.CONFIGURE, change)
        state = await session.until(lambda state: state["revision"] == receipt["revision"])
        assert [notice["code"] for notice in state["notices"]] == [code]
        assert code not in state["notices"][0]["message"]
        assert (await session.play("go"))["status"] == "committed"


async def test_an_edited_package_counts_from_the_next_configuration_not_for_what_runs(tmp_path: Path) -> None:
    body = 'await ctx.plugin_data.set("seen", f"t{ctx.logical_turn}", "old")\n' + OK
    async with rig(tmp_path, packages={"work": function(body)}) as r:
        session = await r.session(packages=["work"])
        await session.play("go")
        (tmp_path / "packages/work/handler.py").write_text(function(body.replace("old", "new"))["handler.py"])
        await session.play("go")
        await session.update(names.CONFIGURE, {"packages": ["work"]})
        await session.play("go")
        assert await records(r, session, "work", "seen") == {"t1": "old", "t2": "old", "t3": "new"}


@pytest.mark.parametrize("kind", ["update", "signal"])
async def test_an_interjection_is_recorded_once_with_the_running_turn(tmp_path: Path, kind: str) -> None:
    async with rig(tmp_path, packages={"work": with_path(held(tmp_path))}) as r:
        session = await r.session(packages=["work"])
        turn_id = (await session.submit("go"))["turn_id"]
        await session.until(lambda state: state["running"])
        message = {"interjection_id": "i1", "text": "Be kind."}
        for _ in range(2):
            if kind == "update":
                assert (await session.update(names.INTERJECT, message))["turn_id"] == turn_id
            else:
                await session.handle.signal(names.INTERJECT, message)

        async def stored() -> list[str]:
            async with r.store.read() as conn:
                return [i.text for i in await interjections.list_of_turn(conn, session.session_id, turn_id)]

        assert await until(stored, bool) == ["Be kind."]
        (tmp_path / "gate").touch()


# Continue-as-new


@pytest.fixture
async def short_history(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a server that suggests to continue as new after a few turns."""
    config = {"limit.historyCount.suggestContinueAsNew": 30}
    async with await start_dev_server(
        tmp_path / "server", ui=False, in_memory=True, dynamic_config=config
    ) as server:
        yield server.address


async def test_a_session_that_continues_as_new_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, short_history: str
) -> None:
    async with rig(tmp_path, packages={"work": function(COUNT)}, TURNWRIGHT_ADDRESS=short_history) as r:
        session = await r.session(packages=["work"])
        first = await session.handle.describe()
        receipts = []
        for n in range(4):
            batch = [session.submit(f"{n}.{k}", f"a{n}.{k}") for k in (0, 0, 1, 2)]
            receipts += await asyncio.gather(*batch)
        turn_ids = sorted({receipt["turn_id"] for receipt in receipts})
        for receipt in receipts:
            assert (await session.result(receipt, timeout_s=60))["status"] == "committed"
        assert (await session.handle.describe()).run_id != first.run_id
        assert len(turn_ids) == 12
        for n in range(4):
            again = await session.submit(f"{n}.0", f"a{n}.0")
            assert again["turn_id"] in turn_ids
        await session.play("last")
        assert await records(r, session, "work", "notes") == {"n": 13}
        state = await session.until(lambda state: state["running"] is None)
        assert (state["completed_player_turns"], state["queue"]) == (13, [])
        assert sorted(await said(r, session)) == sorted(
            [f"{n}.{k}" for n in range(4) for k in range(3)] + ["last"]
        )


async def test_e15_updates_in_flight_at_the_border_are_answered_and_applied_once(
    tmp_path: Path, short_history: str
) -> None:
    async with rig(tmp_path, packages={"work": function(COUNT)}, TURNWRIGHT_ADDRESS=short_history) as r:
        session = await r.session(packages=["work"])
        runs, count = set(), 0
        for n in range(10):
            answers = await asyncio.gather(
                session.submit(f"{n}", f"b{n}"),
                session.update(names.CONFIGURE, {"locale": f"en-{n % 2}1"}),
                session.update(names.INTERJECT, {"interjection_id": f"i{n}", "text": "Go on."}),
            )
            count += 1
            await session.result(answers[0], timeout_s=60)
            runs.add((await session.handle.describe()).run_id)
        assert len(runs) > 2
        state = await session.until(lambda state: state["revision"] == 10)
        assert state["notices"] == []
        assert await records(r, session, "work", "notes") == {"n": count}


async def test_an_open_job_and_a_pause_survive_the_border(tmp_path: Path, short_history: str) -> None:
    gate = tmp_path / "gate"
    wait = f"while not Path({str(gate)!r}).exists():\n    await asyncio.sleep(0.01)\n"
    job = function(wait + OK, stage="post-turn", extra='  effects: { writes: ["plugin-data:self:notes"] }\n')
    job["PLUGIN.md"] = job["PLUGIN.md"].replace(
        "{ stage: post-turn }", "{ stage: post-turn, every: 3, detached: true }"
    )
    packages = {"job": with_path(job), "work": function(COUNT)}
    async with rig(tmp_path, packages=packages, TURNWRIGHT_ADDRESS=short_history) as r:
        session = await r.session(packages=["job", "work"])
        runs = set()
        for _ in range(6):
            await session.play("go")
            runs.add((await session.handle.describe()).run_id)
        assert len(runs) > 1
        await session.until(lambda state: len(state["jobs"]) == 2)
        await control(session, "pause")
        gate.touch()
        state = await session.until(lambda state: state["jobs"] == [])
        assert state["status"] == "paused"
