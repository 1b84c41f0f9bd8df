from __future__ import annotations

import pytest

from kernel.errors import Code, TurnwrightError
from kernel.wire.usage import UsageTotals
from store import (
    approvals,
    calls,
    data,
    events,
    interjections,
    jobs,
    journal,
    messages,
    runs,
    sessions,
    tool_results,
    transcripts,
    turns,
)
from store.engine import Store


async def test_a_session_is_created_once(store: Store) -> None:
    async with store.write() as conn:
        first, new = await sessions.create(
            conn, session_id="s", incarnation="one", packages=["a"], bindings={"x": "y"}, now=5.0
        )
        again, created = await sessions.create(conn, session_id="s", incarnation="two", now=6.0)
    assert (new, created) == (True, False)
    assert again == first
    assert first.packages == ["a"]
    assert first.created_at == 5.0


async def test_a_session_changes_only_where_it_is_told(store: Store) -> None:
    async with store.write() as conn:
        before, _ = await sessions.create(conn, session_id="s", incarnation="i", now=1.0)
        after = await sessions.update(conn, "s", status="paused", active=[{"package_id": "p"}], now=2.0)
    assert before.packages is None
    assert (after.status, after.active, after.phase, after.updated_at) == (
        "paused",
        [{"package_id": "p"}],
        "setup",
        2.0,
    )


async def test_an_unknown_session_is_named(store: Store) -> None:
    async with store.write() as conn:
        assert await sessions.get(conn, "nobody") is None
        with pytest.raises(TurnwrightError, match="nobody") as refusal:
            await sessions.lock(conn, "nobody")
    assert refusal.value.code == Code.SESSION_UNKNOWN


async def test_sessions_are_listed_the_last_changed_first(store: Store) -> None:
    async with store.write() as conn:
        for time, name in enumerate(["old", "new", "ended"]):
            await sessions.create(conn, session_id=name, incarnation="i", now=float(time))
        await sessions.update(conn, "ended", status="ended", now=9.0)
        assert [found.session_id for found in await sessions.list_all(conn)] == ["ended", "new", "old"]
        active = await sessions.list_all(conn, status="active", limit=1)
    assert [found.session_id for found in active] == ["new"]


async def test_the_same_action_is_the_same_turn(store: Store) -> None:
    async with store.write() as conn:
        new = await turns.accept_action(
            conn, session_id="s", action_id="a", turn_id="t", text="one\x00\ud800", payload={"k": None}
        )
        again = await turns.accept_action(conn, session_id="s", action_id="a", turn_id="t", text="two")
        action = await turns.get_action(conn, "t")
    assert (new, again) == (True, False)
    assert action is not None
    assert action.text == "one\ufffd\ufffd"
    assert action.payload == {"k": None}


async def test_a_turn_id_of_another_action_is_a_conflict(store: Store) -> None:
    async with store.write() as conn:
        await turns.accept_action(conn, session_id="s", action_id="a", turn_id="t")
        with pytest.raises(TurnwrightError) as refusal:
            await turns.accept_action(conn, session_id="s", action_id="b", turn_id="t")
    assert refusal.value.code == Code.STORE_CONFLICT


async def test_a_turn_keeps_its_first_generation_and_its_first_receipt(store: Store) -> None:
    facts = {"turn_id": "t", "session_id": "s", "action_id": "a", "origin": "player", "logical_turn": 1}
    async with store.write() as conn:
        first, new = await turns.open_turn(conn, **facts, generation={"v": 1}, now=1.0)
        again, opened = await turns.open_turn(conn, **facts, generation={"v": 2}, now=2.0)
        assert (new, opened, again.generation, again.status) == (True, False, {"v": 1}, "open")
        assert again == first
        assert await turns.get_receipt(conn, "t") is None
        assert await turns.close_turn(conn, "t", status="committed", receipt={"r": 1}, now=3.0)
        assert not await turns.close_turn(conn, "t", status="rejected", receipt={"r": 2})
        assert await turns.get_receipt(conn, "t") == {"r": 1}
        turn = await turns.require_turn(conn, "t")
    assert (turn.status, turn.receipt, turn.ended_at) == ("committed", {"r": 1}, 3.0)


async def test_turns_are_listed_newest_first(store: Store) -> None:
    async with store.write() as conn:
        for number in range(4):
            await turns.open_turn(
                conn,
                turn_id=f"t{number}",
                session_id="s",
                action_id="a",
                origin="player",
                logical_turn=1,
                generation=None,
                now=float(number),
            )
        page = await turns.list_turns(conn, "s", limit=2)
        rest = await turns.list_turns(conn, "s", before=page[-1].created_at)
    assert [turn.turn_id for turn in page + rest] == ["t3", "t2", "t1", "t0"]


async def test_outputs_come_by_runtime_and_bring_their_status(store: Store) -> None:
    async with store.write() as conn:
        await runs.put_output(conn, "t", "p/b", output=[1], text="told")
        await runs.put_output(conn, "t", "p/a", output=None)
        found = await runs.get_outputs(conn, "t", ["p/b", "p/a", "p/none"])
    assert list(found) == ["p/a", "p/b"]
    assert (found["p/b"].status, found["p/b"].output, found["p/b"].text) == ("success", [1], "told")
    assert found["p/a"].output is None


async def test_staged_proposals_stand_in_call_order_whoever_finished_first(store: Store) -> None:
    async with store.write() as conn:
        await runs.stage(conn, "t", "b", ["late call"], step=1, idx=1)
        await runs.stage(conn, "t", "b", ["early call", "again"], step=1, idx=0)
        await runs.stage(conn, "t", "a", ["other run"])
        await runs.stage(conn, "t", "a", [])
        found = await runs.list_staged(conn, "t", ["b", "a"])
    assert [item.proposal for item in found] == ["early call", "again", "late call", "other run"]


async def test_replaced_proposals_are_the_only_ones(store: Store) -> None:
    async with store.write() as conn:
        await runs.stage(conn, "t", "a", [1, 2, 3])
        await runs.replace_staged(conn, "t", "a", [4])
        assert [item.proposal for item in await runs.list_staged(conn, "t", ["a"])] == [4]
        await runs.replace_staged(conn, "t", "a", [])
        assert await runs.list_staged(conn, "t", ["a"]) == []


async def test_a_transcript_keeps_order_and_finds_a_stored_reply(store: Store) -> None:
    said = [{"role": "user", "text": "Hi \x00 \ud800"}, {"role": "assistant", "text": "漢字"}]
    async with store.write() as conn:
        added = await transcripts.add(conn, "t", "a", said, step=1)
        assert await transcripts.add(conn, "t", "a", [{"role": "tool"}], step=2)
        assert await transcripts.add(conn, "t", "a", [{"role": "assistant"}], step=1) == []
        entries = await transcripts.load(conn, "t", "a")
        earlier = await transcripts.load(conn, "t", "a", before_step=2)
        reply = await transcripts.find(conn, "t", "a", step=1)
        assert await transcripts.find(conn, "t", "a", step=2) is None
    assert [entry.message for entry in entries] == [*said, {"role": "tool"}]
    assert earlier == entries[:2] == added
    assert reply == entries[1]


async def test_a_tool_receipt_is_written_once(store: Store) -> None:
    async with store.write() as conn:
        first, new = await tool_results.put(conn, "t", "a", 1, 0, call_id="c", ok=True, result={"n": 1})
        again, stored = await tool_results.put(
            conn, "t", "a", 1, 0, call_id="c", ok=False, code="tool.failed"
        )
        await tool_results.put(conn, "t", "a", 1, 1, call_id="d", ok=False, code="tool.failed")
        assert [found.idx for found in await tool_results.list_run(conn, "t", "a")] == [0, 1]
    assert (new, stored) == (True, False)
    assert again == first


async def begin(conn, ordinal: int = 1, owner: str = "t", runtime: str = "a") -> calls.Begun:
    return await calls.begin(
        conn,
        owner,
        runtime,
        ordinal,
        session_id="s",
        turn_id="t",
        slot="story",
        model="m",
        idempotency_key="k",
    )


async def test_a_call_in_flight_when_its_worker_died_is_counted_as_unknown(store: Store) -> None:
    async with store.write() as conn:
        first = await begin(conn)
        second = await begin(conn)
        assert await calls.finish(conn, second.call, status="ok", input_tokens=10, cost_usd=0.5)
        assert not await calls.finish(conn, second.call, status="failed")
        totals = await calls.totals_of_runtime(conn, "t", "a")
    assert first.earlier == ()
    assert [(call.attempt, call.status) for call in second.earlier] == [(1, "unknown")]
    assert second.call.attempt == 2
    assert totals == UsageTotals(calls=2, unknown=1, input_tokens=10, cost_usd=0.5)
    assert totals.model_fields_set == {"calls", "unknown", "input_tokens", "cost_usd"}


async def test_the_ordinal_of_a_functions_call_has_53_bits(store: Store) -> None:
    async with store.write() as conn:
        await begin(conn, 2**53 - 1)
        again = await begin(conn, 2**53 - 1)
        assert (again.call.ordinal, again.call.attempt) == (2**53 - 1, 2)
        assert [call.ordinal for call in await calls.list_calls(conn, "t")] == [2**53 - 1] * 2


async def test_a_lost_call_that_comes_back_is_priced_after_all(store: Store) -> None:
    async with store.write() as conn:
        lost = await begin(conn)
        await begin(conn)
        assert await calls.finish(conn, lost.call, status="ok", output_tokens=3, cost_usd=0.1)
        assert (await calls.totals_of_owner(conn, "t")).unknown == 0


async def test_totals_add_up_by_turn_and_session(store: Store) -> None:
    async with store.write() as conn:
        for owner, runtime in (("t", "a"), ("t", "b"), ("job", "c")):
            begun = await begin(conn, owner=owner, runtime=runtime)
            cost = None if runtime == "b" else 0.1
            await calls.finish(conn, begun.call, status="ok", input_tokens=1, cost_usd=cost)
        assert (await calls.totals_of_runtime(conn, "t", "b")).unpriced == 1
        assert (await calls.totals_of_owner(conn, "t")).calls == 2
        assert await calls.totals_of_turn(conn, "t") == await calls.totals_of_session(conn, "s")
        assert (await calls.totals_of_session(conn, "s")).cost_usd == 0.2
        assert await calls.totals_of_session(conn, "other") == UsageTotals()
        assert [call.runtime_id for call in await calls.list_calls(conn, "t")] == ["a", "b"]


async def test_a_journaled_call_replays_its_first_result(store: Store) -> None:
    key = ("t", "a", "content", 0)
    async with store.write() as conn:
        assert await journal.find(conn, *key) is None
        assert (await journal.begin(conn, *key, kind="http")).attempts == 1
        assert (await journal.begin(conn, *key, kind="http")).attempts == 2
        await journal.finish(conn, *key, result={"n": 1})
        assert (await journal.finish(conn, *key, result={"n": 2})).result == {"n": 1}
        done = await journal.begin(conn, *key, kind="http")
        assert [effect.repeat for effect in await journal.list_run(conn, "t", "a")] == [0]
    assert (done.status, done.result, done.attempts) == ("done", {"n": 1}, 2)


async def test_recent_messages_are_those_of_the_last_turns(store: Store) -> None:
    async with store.write() as conn:
        await sessions.create(conn, session_id="s", incarnation="i")
        for turn in ("t1", "t2", "t3"):
            await sessions.lock(conn, "s")
            await messages.append(conn, "s", turn_id=turn, role="player", text=f"ask {turn}")
            await messages.append(conn, "s", turn_id=turn, role="story", text="told", segments=[{"n": 1}])
        recent = await messages.recent(conn, "s", 2)
        assert await messages.recent(conn, "s", 0) == []
        assert await messages.recent(conn, "other", 5) == []
        assert [found.position for found in await messages.list_all(conn, "s", after=2, limit=2)] == [3, 4]
        assert len(await messages.of_turn(conn, "s", "t1")) == 2
    assert [found.position for found in recent] == [3, 4, 5, 6]
    assert recent[0].segments is None
    assert recent[1].segments == [{"n": 1}]


async def test_events_are_read_behind_a_position(store: Store) -> None:
    async with store.write() as conn:
        for topic in ("a", "b", "c"):
            await events.append(conn, "s", turn_id="t", runtime_id="r", topic=topic, payload={"t": topic})
        found = await events.list_events(conn, "s", after=1, limit=1)
    assert [(event.position, event.topic) for event in found] == [(2, "b")]


async def test_a_job_starts_and_ends_once(store: Store) -> None:
    facts = {"job_id": "j", "session_id": "s", "turn_id": "t", "runtime_id": "r"}
    async with store.write() as conn:
        _, new = await jobs.create(conn, **facts, settle=True, options={"o": 1})
        _, created = await jobs.create(conn, **facts)
        assert (new, created) == (True, False)
        assert await jobs.start(conn, "j")
        assert not await jobs.start(conn, "j")
        assert [job.job_id for job in await jobs.list_jobs(conn, "s", statuses=jobs.OPEN)] == ["j"]
        assert await jobs.end(conn, "j", status="failed", reason="runtime.failed", usage={"calls": 1})
        assert not await jobs.end(conn, "j", status="succeeded")
        job = await jobs.get(conn, "j")
        assert await jobs.list_jobs(conn, "s", statuses=jobs.OPEN) == []
    assert job is not None
    assert (job.status, job.settle, job.options, job.usage) == ("failed", True, {"o": 1}, {"calls": 1})


async def test_an_approval_is_answered_once(store: Store) -> None:
    question = {"ref": "a", "session_id": "s", "turn_id": "t", "runtime_id": "r", "call_id": "c"}
    question |= {"tool": "delete", "workflow_id": "agent/t/r", "arguments": {"path": "/"}}
    async with store.write() as conn:
        for new in (True, False):
            _, recorded = await approvals.record(conn, **question, opened_at=1.0, deadline=9.0)
            assert recorded is new
        assert [found.ref for found in await approvals.list_approvals(conn, session_id="s")] == ["a"]
        assert await approvals.close(conn, "a", status="denied", note="no", actor="me", now=2.0)
        assert not await approvals.close(conn, "a", status="approved")
        assert not await approvals.close(conn, "unknown", status="approved")
        found = await approvals.get(conn, "a")
        assert await approvals.list_approvals(conn) == []
        assert len(await approvals.list_approvals(conn, status=None)) == 1
    assert found is not None
    assert (found.status, found.note, found.actor, found.closed_at) == ("denied", "no", "me", 2.0)


async def test_an_interjection_is_recorded_once(store: Store) -> None:
    facts = {"session_id": "s", "interjection_id": "i", "turn_id": "t"}
    async with store.write() as conn:
        assert await interjections.add(conn, **facts, text="faster")
        assert not await interjections.add(conn, **facts, text="slower")
        assert [found.text for found in await interjections.list_of_turn(conn, "s", "t")] == ["faster"]


async def test_records_are_overwritten_together_and_keep_count(store: Store) -> None:
    async with store.write() as conn:
        await data.put(conn, "s", "p", "n", "a", value=1, turn_id="t1", now=1.0)
        items = [("n", "a", 2), ("n", "b", 3), ("n", "a", 4)]
        await data.overwrite(conn, "s", "p", items, turn_id="t2", now=2.0)
        await data.overwrite(conn, "s", "p", [], turn_id="t3")
        page = await data.list_records(conn, "s", "p", "n")
    found = [(r.key, r.value, r.version, r.turn_id, r.created_at, r.updated_at) for r in page.records]
    assert found == [("a", 4, 3, "t2", 1.0, 2.0), ("b", 3, 1, "t2", 2.0, 2.0)]
