"""Bad messages poison nothing: every message and every start of every workflow, sent by a plain client."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

import worker
from kernel.errors import Code
from kernel.wire import names
from kernel.wire.ids import agent_workflow, job_workflow, session_workflow
from link.codec import EncryptionCodec, codec
from tests.link.probe import new_key
from tests.running import payloads
from tests.running.guide import PACKAGE, STORY, approvals, guide, marks, wait_for
from tests.running.payloads import Good, code_of, raw
from tests.support.model_server import ModelServer, Reply
from tests.support.rig import Rig, SessionDriver, rig

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SUBMIT = {"action_id": "x1", "text": "No."}
INTERJECT = {"interjection_id": "x2", "text": "No."}
RESOLVE = {"ref": "x3", "decision": "approve"}
REPORT = {"job_ended": "x4"}
DELIVER = {"stop": "x5"}

UPDATES: Mapping[str, Good] = {
    names.SUBMIT: SUBMIT,
    names.RUN: {"action_id": "x6", "runtime_id": "guide/story"},
    names.RESOLVE: RESOLVE,
    names.INTERJECT: INTERJECT,
    names.CONFIGURE: {"locale": "de"},
    names.CONTROL: {"action": "end"},
}
"""Of `Session`; the others take none."""

SIGNALS: Mapping[str, Mapping[str, Good]] = {
    names.SESSION: {names.RESOLVE: RESOLVE, names.INTERJECT: INTERJECT, names.REPORT: REPORT},
    names.TURN: {names.DELIVER: DELIVER, names.REPORT: REPORT},
    names.AGENT: {names.DELIVER: DELIVER},
    names.JOB: {},
}
QUERIES: Mapping[str, Mapping[str, Good]] = {
    names.SESSION: {names.STATE: None},
    names.TURN: {names.GRAPH: None},
    names.AGENT: {},
    names.JOB: {},
}
STARTS: Mapping[str, Good] = {
    names.SESSION: {"session_id": "x7"},
    names.TURN: {"session_id": "x7", "turn_id": "x8", "incarnation": "x9"},
    names.AGENT: {"session_id": "x7", "turn_id": "x8", "runtime_id": "x/x", "spec": {"slot": "story"}},
    names.JOB: {
        "session_id": "x7",
        "incarnation": "x9",
        "job": {"job_id": "xa", "turn_id": "x8", "runtime_id": "x/x"},
    },
}


@pytest.fixture(params=["plain", "encrypted"])
def environ(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    if request.param == "plain":
        return {}
    monkeypatch.setenv("MESSAGES_KEY", new_key())
    return {"TURNWRIGHT_ENCRYPTION_KEY_ENV": "MESSAGES_KEY"}


async def test_bad_messages_change_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    """All four workflows run, are sent everything, and then hear a good message and end well."""
    gate = tmp_path / "gate"
    packages = {PACKAGE: guide(diary=wait_for(gate))}
    script = [Reply(text="One."), marks(), Reply(text="Two.")]
    async with rig(tmp_path, packages=packages, model=ModelServer(script), **environ) as r:
        session = await r.session(packages=[PACKAGE])
        job = (await session.play("I look up."))["jobs"][0]["job_id"]
        # The second action waits for the job; a session without jobs runs it to its approval.
        asking = await r.session(packages=[PACKAGE])
        receipt = await asking.submit("I look down.")
        [ref] = await approvals(asking)
        before = await asking.state()
        running = {
            names.SESSION: asking.handle.id,
            names.TURN: receipt["workflow_id"],
            names.AGENT: agent_workflow(receipt["turn_id"], STORY),
            names.JOB: job_workflow(job),
        }
        outside = await _outside(r)
        for kind, workflow_id in running.items():
            await _bombard(kind, outside.get_workflow_handle(workflow_id), codec(r.settings))
        assert await asking.state() == before

        resolved = await asking.update(names.RESOLVE, {"ref": ref, "decision": "approve"})
        assert resolved["outcome"] == "applied"
        assert (await asking.result(receipt))["story"]["text"] == "Two."
        gate.touch()
        ended = await r.client.get_workflow_handle(running[names.JOB]).result()
        assert ended["status"] == "succeeded"
        for workflow_id in running.values():
            await _assert_no_task_failed(r.client, workflow_id)


async def test_bad_starts_fail_at_once_with_a_name(tmp_path: Path, environ: dict[str, str]) -> None:
    async with rig(tmp_path, **environ) as r:
        outside = await _outside(r)
        for kind, good in STARTS.items():
            rows = await payloads.table(good, codec(r.settings))
            seen = {name: code_of(_start(r, outside, kind, bad)) for name, (bad, _) in rows.items()}
            codes = dict(zip(seen, await asyncio.gather(*seen.values()), strict=True))
            assert {n: c for n, c in codes.items() if c not in rows[n][1]} == {}, kind


async def test_messages_before_the_first_task(tmp_path: Path, environ: dict[str, str]) -> None:
    """E9: bad and good messages lie there before any worker came, as do starts that must fail."""
    async with rig(tmp_path, start_worker=False, **environ) as r:
        outside, key = await _outside(r), codec(r.settings)
        good = await r.session(packages=[])
        driver = outside.get_workflow_handle(good.handle.id)
        for name, sample in SIGNALS[names.SESSION].items():
            for bad, codes in (await payloads.table(sample, key)).values():
                if payloads.REFUSED_BY_SERVER not in codes:
                    await driver.signal(name, args=raw(bad))
        await driver.signal("nobody", args=raw([payloads.plain(5)]))
        await good.handle.signal(names.INTERJECT, {"interjection_id": "i1", "text": "Slower."})
        updates = [
            asyncio.create_task(code_of(driver.execute_update(names.SUBMIT, args=raw(bad))))
            for bad in (await payloads.keyed([payloads.plain(5)], key), [])
        ]
        failing = {kind: await _signalled_start(r, outside, kind, key) for kind in STARTS}
        async with _workers(r):
            assert await asyncio.gather(*updates) == [Code.WIRE_MALFORMED, Code.WIRE_MALFORMED]
            await _assert_goes_on(good)
            for kind, handle in failing.items():
                assert await code_of(handle.result()) == Code.WIRE_MALFORMED, kind
                await _assert_no_task_failed(r.client, handle.id)
        await _assert_no_task_failed(r.client, good.handle.id)


async def _bombard(kind: str, handle: WorkflowHandle[Any, Any], key: EncryptionCodec | None) -> None:
    """Send every row to every message of one workflow, and to names it does not have."""
    for name, good in {**SIGNALS[kind], "nobody": {"text": "x"}}.items():
        for row, (bad, codes) in (await payloads.table(good, key)).items():
            refused = await code_of(handle.signal(name, args=raw(bad)))
            expected = payloads.REFUSED_BY_SERVER if payloads.REFUSED_BY_SERVER in codes else ""
            assert refused == expected, (kind, name, row)
    oversize: list[Awaitable[None]] = []
    updates = UPDATES if kind == names.SESSION else {}
    for messages, send in ((updates, handle.execute_update), (QUERIES[kind], handle.query)):
        for name, good in messages.items():
            for row, (bad, codes) in (await payloads.table(good, key)).items():
                check = _assert_refused(send(name, args=raw(bad)), codes, f"{kind} {name} {row}")
                if payloads.REFUSED_BY_SERVER in codes:
                    oversize.append(check)  # the SDK tries for ten seconds: all at once
                else:
                    await check
    await asyncio.gather(*oversize)
    assert await code_of(handle.execute_update("nobody"))
    assert await code_of(handle.query("nobody"))


async def _assert_refused(call: Awaitable[object], codes: set[str], what: str) -> None:
    assert await code_of(call) in codes, what


async def _start(r: Rig, outside: Client, kind: str, bad: list[Any]) -> object:
    handle = await outside.start_workflow(
        kind, args=raw(bad), id=f"bad/{uuid.uuid4().hex}", task_queue=r.settings.temporal.queue
    )
    return await handle.result()


async def _signalled_start(
    r: Rig, outside: Client, kind: str, key: EncryptionCodec | None
) -> WorkflowHandle[Any, Any]:
    """A start with a bad input and a signal in the same call, another signal and an update behind it."""
    five = raw(await payloads.keyed([payloads.plain(5)], key))
    signal = next(iter(SIGNALS[kind]), "nobody")
    handle = await outside.start_workflow(
        kind,
        args=five,
        id=f"bad/{uuid.uuid4().hex}",
        task_queue=r.settings.temporal.queue,
        start_signal=signal,
        start_signal_args=five,
    )
    good = SIGNALS[kind].get(signal) or {}
    await handle.signal(signal, args=raw(await payloads.keyed([payloads.plain(dict(good))], key)))
    return handle


async def _outside(r: Rig) -> Client:
    """A client of nobody in particular: the SDK's own converter, no codec."""
    return await Client.connect(r.settings.temporal.address)


def _workers(r: Rig) -> Any:
    from contextlib import AsyncExitStack, asynccontextmanager

    @asynccontextmanager
    async def started() -> Any:
        async with AsyncExitStack() as stack:
            parts = await worker.assemble(r.settings, stack)
            for one in worker.build_workers(parts):
                await stack.enter_async_context(one)
            yield

    return started()


async def _assert_goes_on(session: SessionDriver) -> None:
    """The session heard the one good interjection, and takes a good update."""
    state = await session.until(lambda state: state["status"] == "active")
    assert (state["queue"], state["jobs"], state["approvals"]) == ([], [], [])
    assert (await session.update(names.CONTROL, {"action": "pause"}))["status"] == "paused"
    assert session.handle.id == session_workflow(session.session_id)


async def _assert_no_task_failed(client: Client, workflow_id: str) -> None:
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    failed = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    assert [event for event in history.events if event.event_type == failed] == [], workflow_id
