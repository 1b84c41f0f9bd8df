"""No message reaches a handler unchecked: whatever comes, the workflow goes on or says why not."""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.service import RPCError

from kernel.errors import Code
from link.settings import Settings
from tests.link.probe import (
    BAD,
    GOOD,
    Note,
    Probe,
    Seen,
    assert_goes_on,
    json_payload,
    new_key,
    plain_client,
    probe_worker,
    raw,
    start_probe,
)
from tests.support.temporal import link_settings, unique_queue

pytestmark = pytest.mark.slow


@pytest.fixture(params=[False, True], ids=["unsandboxed", "sandboxed"])
def sandbox(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return link_settings(tmp_path)


async def code_of(call: Awaitable[object]) -> str | None:
    """The error code that a call ends with."""
    try:
        await call
    except (WorkflowUpdateFailedError, WorkflowFailureError) as error:
        cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
        assert isinstance(cause, ApplicationError)
        assert cause.non_retryable
        assert cause.message.startswith(str(cause.type)) or ": " in cause.message
        return cause.type
    except WorkflowQueryFailedError as error:
        return str(error).split(":")[0]
    return None


async def foreign(handle: WorkflowHandle[Probe, Seen]) -> WorkflowHandle[object, object]:
    return (await plain_client()).get_workflow_handle(handle.id)


async def test_bad_updates_are_rejected(settings: Settings, sandbox: bool) -> None:
    async with probe_worker(settings, sandbox=sandbox) as client:
        handle = await start_probe(client, settings)
        outside = await foreign(handle)
        codes = {
            n: await code_of(outside.execute_update("add", args=raw(bad))) for n, (bad, _) in BAD.items()
        }
        assert codes == {name: code for name, (_, code) in BAD.items()}
        await assert_goes_on(handle)
        history = await handle.fetch_history()
        assert not any(e.HasField("workflow_task_failed_event_attributes") for e in history.events)
        updates = [
            e for e in history.events if e.HasField("workflow_execution_update_accepted_event_attributes")
        ]
        assert len(updates) == 1


async def test_bad_updates_without_validator_fail_after_acceptance(settings: Settings) -> None:
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        outside = await foreign(handle)
        fits = ("two",)
        codes = {
            name: await code_of(outside.execute_update("add_unchecked", args=raw(bad)))
            for name, (bad, _) in BAD.items()
            if name not in fits
        }
        assert codes == {name: code for name, (_, code) in BAD.items() if name not in fits}
        await assert_goes_on(handle)


async def test_optional_argument_may_be_left_out(settings: Settings) -> None:
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        outside = await foreign(handle)
        assert await outside.execute_update("add_unchecked", args=raw([GOOD])) == {"texts": ["good"]}
        await assert_goes_on(handle)


async def test_bad_queries_fail(settings: Settings, sandbox: bool) -> None:
    async with probe_worker(settings, sandbox=sandbox) as client:
        handle = await start_probe(client, settings)
        outside = await foreign(handle)
        codes = {n: await code_of(outside.query("has", args=raw(bad))) for n, (bad, _) in BAD.items()}
        assert codes == {name: code for name, (_, code) in BAD.items()}
        assert await code_of(outside.query("seen", args=raw([GOOD]))) == Code.WIRE_MALFORMED
        await assert_goes_on(handle)


async def test_bad_signals_are_dropped(
    settings: Settings, sandbox: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with probe_worker(settings, sandbox=sandbox) as client:
        handle = await start_probe(client, settings)
        outside = await foreign(handle)
        with caplog.at_level(logging.WARNING):
            for bad, _ in BAD.values():
                await outside.signal("note", args=raw(bad))
            await outside.signal("finish", args=raw([GOOD]))
            await outside.signal("note", args=raw([GOOD]))
            await handle.execute_update(Probe.add, Note(text="after"))
        dropped = [record for record in caplog.records if "drop" in record.getMessage()]
        assert len(dropped) == len(BAD) + 1
        assert (await handle.query(Probe.seen)).texts == ("good", "after")
        await assert_goes_on(handle)


async def test_bad_starts_fail_at_once(settings: Settings, sandbox: bool) -> None:
    async with probe_worker(settings, sandbox=sandbox):
        outside = await plain_client()
        codes = {
            name: await code_of(
                outside.execute_workflow(
                    "Probe", args=raw(bad), id=unique_queue("bad"), task_queue=settings.temporal.queue
                )
            )
            for name, (bad, _) in BAD.items()
        }
        assert codes == {name: code for name, (_, code) in BAD.items()}


async def test_three_mebibytes_are_refused_before_history(settings: Settings) -> None:
    huge = raw([json_payload('{"text": "' + "x" * 3 * 2**20 + '"}')])
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        outside = await foreign(handle)
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: outside.signal("note", args=huge),
            lambda: outside.execute_update("add", args=huge),
            lambda: outside.query("has", args=huge),
            lambda: outside._client.start_workflow("Probe", args=huge, id="huge", task_queue="nobody"),
        ]
        for call in calls:
            with pytest.raises((RPCError, WorkflowUpdateFailedError, WorkflowQueryFailedError)):
                await call()
        await assert_goes_on(handle)


@pytest.mark.parametrize(
    "start", [[], [json_payload("null")], [json_payload("5")]], ids=["none", "null", "number"]
)
async def test_message_that_comes_with_a_bad_start_meets_no_handler(
    settings: Settings, start: list[object]
) -> None:
    async with probe_worker(settings):
        outside = await plain_client()
        handle = await outside.start_workflow(
            "Probe",
            args=raw(start),  # type: ignore[arg-type]
            id=unique_queue("bad"),
            task_queue=settings.temporal.queue,
            start_signal="note",
            start_signal_args=raw([GOOD]),
        )
        assert await code_of(handle.result()) == Code.WIRE_MALFORMED
        history = await handle.fetch_history()
        assert not any(e.HasField("workflow_task_failed_event_attributes") for e in history.events)
        assert await code_of(handle.query("seen")) is not None


async def test_update_that_comes_with_a_bad_start_meets_no_handler(settings: Settings) -> None:
    async with probe_worker(settings):
        outside = await plain_client()
        start: WithStartWorkflowOperation[Probe, Seen] = WithStartWorkflowOperation(
            "Probe",
            id=unique_queue("bad"),
            task_queue=settings.temporal.queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        )
        with pytest.raises((WorkflowUpdateFailedError, RPCError)):
            await outside.execute_update_with_start_workflow(
                "add_unchecked", args=raw([GOOD]), start_workflow_operation=start
            )
        handle = await start.workflow_handle()
        assert await code_of(handle.result()) == Code.WIRE_MALFORMED


async def test_signal_and_update_that_come_with_a_good_start_are_heard(settings: Settings) -> None:
    async with probe_worker(settings) as client:
        handle = await client.start_workflow(
            Probe.run,
            Note(text="start"),
            id=unique_queue("probe"),
            task_queue=settings.temporal.queue,
            start_signal="note",
            start_signal_args=[Note(text="first")],
        )
        assert (await handle.execute_update(Probe.add, Note(text="second"))).texts == ("first", "second")
        await assert_goes_on(handle)


async def test_refusals_of_handlers_carry_their_code(settings: Settings) -> None:
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        assert await code_of(handle.execute_update(Probe.add, Note(text="refuse"))) == Code.SESSION_QUEUE_FULL
        assert await code_of(handle.execute_update(Probe.add, Note(text="late"))) == Code.SESSION_PAUSED
        await handle.signal(Probe.note, Note(text="refuse"))
        await assert_goes_on(handle)


async def test_refusal_of_an_activity_is_tried_once_and_keeps_its_details(settings: Settings) -> None:
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update(Probe.call, Note(text="refuse", count=7))
        cause = caught.value.cause
        assert isinstance(cause, ActivityError)
        refusal = cause.cause
        assert isinstance(refusal, ApplicationError)
        assert (refusal.type, refusal.non_retryable) == (Code.TOOL_DENIED, True)
        assert refusal.details == ({"seen": 7},)
        assert refusal.message == "tool.denied: not this one"
        await assert_goes_on(handle)


async def test_oversize_payload_from_our_client_names_its_largest_part(settings: Settings) -> None:
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        large = Note(text="x", payload={"items": ["a", "b", "c", "x" * 300_000]})
        with pytest.raises(ApplicationError, match=r"wire\.too-large: Note\.payload\.items\[3\] makes"):
            await handle.execute_update(Probe.add, large)
        await assert_goes_on(handle)


async def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: str | None = None) -> Settings:
    monkeypatch.setenv("PROBE_KEY", new_key())
    extra = {"TURNWRIGHT_QUEUE": queue} if queue else {}
    return link_settings(tmp_path, TURNWRIGHT_ENCRYPTION_KEY_ENV="PROBE_KEY", **extra)


async def client_with(monkeypatch: pytest.MonkeyPatch, settings: Settings, key: str) -> Client:
    from link.connect import connect

    monkeypatch.setenv("PROBE_KEY", key)
    return await connect(settings)


async def test_plaintext_where_encryption_is_on_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = await encrypted(tmp_path, monkeypatch)
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        plain = raw([GOOD])
        for start in ("add", "add_unchecked"):
            outside = await foreign(handle)
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await outside.execute_update(start, args=plain)
            assert isinstance(caught.value.cause, ApplicationError)
            assert caught.value.cause.type == Code.CODEC_PLAINTEXT
        await (await foreign(handle)).signal("note", args=plain)
        with pytest.raises(WorkflowQueryFailedError, match=r"^codec\.plaintext-payload: "):
            await (await foreign(handle)).query("has", args=plain)
        begun = await (await plain_client()).start_workflow(
            "Probe", args=plain, id=unique_queue("bad"), task_queue=settings.temporal.queue
        )
        assert await code_of(client.get_workflow_handle(begun.id).result()) == Code.CODEC_PLAINTEXT
        assert (await handle.query(Probe.seen)).texts == ()
        await assert_goes_on(handle)


async def test_another_key_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = await encrypted(tmp_path, monkeypatch)
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        other = (await client_with(monkeypatch, settings, new_key())).get_workflow_handle(handle.id)
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await other.execute_update("add", Note(text="x"))
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == Code.CODEC_KEY
        await other.signal("note", Note(text="x"))
        with pytest.raises(WorkflowQueryFailedError, match=r"^codec\.wrong-key: "):
            await other.query("has", Note(text="x"))
        assert (await handle.query(Probe.seen)).texts == ()
        await assert_goes_on(handle)


async def test_what_the_sdk_itself_asks_passes_with_encryption_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = await encrypted(tmp_path, monkeypatch)
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        assert "Stack for" in str(await handle.query("__stack_trace"))
        assert await handle.query("__temporal_workflow_metadata")
        assert await handle.query("__enhanced_stack_trace")
        echoed = await handle.execute_update(Probe.call, Note(text="through an activity"))
        assert echoed.text == "through an activity"
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Probe.call, Note(text="refuse"))
        await assert_goes_on(handle)
        history = str((await handle.fetch_history()).to_json())
        for secret in ("through an activity", "not this one"):
            assert secret not in history
            assert base64.b64encode(secret.encode()).decode()[4:12] not in history
