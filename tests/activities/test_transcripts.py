"""A process remembers what it stored of a transcript, and nothing that it does not know for certain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from activities.generations import Place
from activities.models.paid import CallKnown, ModelCalls, Patience, Payer
from activities.models.slots import Slot
from activities.transcripts import Transcripts, reply_entry, save_prompt
from kernel.agent.messages import Message, ModelRequest, ToolCall
from kernel.wire.agent import ModelStep
from store import calls, tool_results, transcripts
from store.engine import Store

PLACE = cast(Place, SimpleNamespace(owner_id="turn", runtime_id="tale"))
RUN = ("turn", "tale")
PROMPT = [Message(role="system", text="Tell."), Message(role="user", text="Go.")]
CALLS = (ToolCall(id="a", name="look", arguments="{}"), ToolCall(id="b", name="look", arguments='{"n":2}'))


async def prompt(store: Store, known: Transcripts) -> None:
    async with store.write() as conn:
        known.keep(PLACE, await save_prompt(conn, PLACE, PROMPT))


async def reply(store: Store, known: Transcripts | None, step: int, *tool_calls: ToolCall) -> None:
    said = Message(role="assistant", text=f"step {step}", tool_calls=tool_calls)
    async with store.write() as conn:
        entries = await transcripts.add(
            conn, *RUN, [reply_entry(said, (), ModelStep(finish="stop"))], step=step
        )
    if known:
        known.keep(PLACE, entries)


async def answer(store: Store, known: Transcripts | None, step: int, index: int) -> None:
    async with store.write() as conn:
        result, _ = await tool_results.put(conn, *RUN, step, index, call_id="", ok=True, result={"n": index})
    if known:
        known.keep(PLACE, [], [result])


async def test_what_is_remembered_is_what_the_store_holds(store: Store) -> None:
    known = Transcripts()
    await prompt(store, known)
    await reply(store, known, 1, *CALLS)
    assert known.remembered(PLACE, 2) is None, "no call is answered yet"
    await answer(store, known, 1, 1)
    await answer(store, known, 1, 0)
    await reply(store, known, 2)
    remembered = known.remembered(PLACE, 3)
    async with store.read() as conn:
        stored = await known.load(conn, PLACE)
    assert remembered is not None
    assert remembered.messages() == stored.messages()
    assert [message.role for message in stored.messages()] == [
        *("system", "user", "assistant", "tool", "tool", "assistant"),
    ]
    assert remembered.recorded(2) == stored.recorded(2) == ModelStep(finish="stop")


@pytest.mark.parametrize("elsewhere", ["prompt", "reply", "answer"])
async def test_a_run_that_was_partly_elsewhere_is_read_back(store: Store, elsewhere: str) -> None:
    here, other = Transcripts(), Transcripts()
    await prompt(store, other if elsewhere == "prompt" else here)
    await reply(store, other if elsewhere == "reply" else here, 1, CALLS[0])
    await answer(store, other if elsewhere == "answer" else here, 1, 0)
    assert here.remembered(PLACE, 2) is None
    async with store.read() as conn:
        assert len((await here.load(conn, PLACE)).messages()) == 4


async def test_a_prompt_that_another_attempt_stored_is_not_ours(store: Store) -> None:
    here = Transcripts()
    await prompt(store, Transcripts())
    await prompt(store, here)
    assert here.remembered(PLACE, 1) is None


async def test_what_is_forgotten_is_read_back(store: Store) -> None:
    known = Transcripts()
    await prompt(store, known)
    assert known.remembered(PLACE, 1) is not None
    known.forget(PLACE)
    assert known.remembered(PLACE, 1) is None


async def test_a_process_remembers_so_much_and_forgets_the_oldest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Transcripts()
    await prompt(store, known)
    monkeypatch.setattr("activities.transcripts.KEPT_BYTES", 1000)
    late = cast(Place, SimpleNamespace(owner_id="late", runtime_id="tale"))
    async with store.write() as conn:
        known.keep(late, await save_prompt(conn, late, [Message(role="user", text="x" * 1000)]))
    assert known.remembered(PLACE, 1) is None
    assert known.remembered(late, 1) is not None


async def test_a_call_that_should_be_new_and_is_not_is_never_sent(store: Store) -> None:
    class Unreachable:
        async def stream(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("sent")

    slot = Slot(base_url="http://127.0.0.1:9", model="m")
    models = ModelCalls(store, {"story": slot}, {"openai-chat": cast(Any, Unreachable())})
    async with store.write() as conn:
        facts = {"session_id": "s", "turn_id": "turn", "slot": "story", "model": "m", "idempotency_key": "k"}
        assert await calls.begin(conn, *RUN, 3, **facts)
    request = ModelRequest(model="m", messages=tuple(PROMPT), max_output_tokens=10)
    with pytest.raises(CallKnown):
        await models.call(
            Payer("s", "turn", *RUN, 3),
            "story",
            request,
            Patience(remaining_s=10, max_retries=0),
            lambda attempt: lambda event: None,
            only_if_new=True,
        )
    async with store.read() as conn:
        (call,) = await calls.list_calls(conn, *RUN)
    assert (call.attempt, call.status) == (1, "sent")
