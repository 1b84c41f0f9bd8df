"""A workflow that takes one of each kind of message, and ways to send it what no client of ours would."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RawValue
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json, Wire
from link.connect import connect
from link.interceptors import WireInterceptor
from link.queries import QueriesLast
from link.settings import Settings
from tests.support.temporal import shared_dev_server, unique_queue

PASSED = ("kernel", "link", "pydantic", "pydantic_core", "annotated_types", "tests")


class Note(Wire):
    """The argument of every message."""

    text: str
    count: int = 0
    payload: Json = None


class Seen(Wire):
    """What the workflow has heard."""

    texts: tuple[str, ...] = ()


@activity.defn(name="echo")
async def echo(note: Note) -> Note:
    if note.text == "refuse":
        raise TurnwrightError(Code.TOOL_DENIED, "not this one", details={"seen": note.count})
    return note


@workflow.defn(name="Probe")
class Probe:
    @workflow.init
    def __init__(self, input: Note | None = None) -> None:
        self._first = input
        self._texts: list[str] = []
        self._finished = False

    @workflow.run
    async def run(self, input: Note | None = None) -> Seen:
        await workflow.wait_condition(lambda: self._finished and workflow.all_handlers_finished())
        return Seen(texts=tuple(self._texts))

    @workflow.signal
    def note(self, note: Note) -> None:
        assert self._first is not None
        if note.text == "refuse":
            raise TurnwrightError(Code.ACTION_INVALID, "not this one")
        self._texts.append(note.text)

    @workflow.signal
    def finish(self) -> None:
        self._finished = True

    @workflow.update
    async def add(self, note: Note) -> Seen:
        assert self._first is not None
        if note.text == "late":
            raise TurnwrightError(Code.SESSION_PAUSED, "after acceptance")
        self._texts.append(note.text)
        return Seen(texts=tuple(self._texts))

    @add.validator
    def _check_add(self, note: Note) -> None:
        if note.text == "refuse":
            raise TurnwrightError(Code.SESSION_QUEUE_FULL, "not this one")

    @workflow.update
    async def add_unchecked(self, note: Note, second: Note | None = None) -> Seen:
        assert self._first is not None
        assert second is None or isinstance(second, Note)
        self._texts.append(note.text)
        return Seen(texts=tuple(self._texts))

    @workflow.update
    async def call(self, note: Note) -> Note:
        return await workflow.execute_activity(
            echo, note, start_to_close_timeout=timedelta(seconds=10), summary="echo"
        )

    @workflow.query
    def seen(self) -> Seen:
        return Seen(texts=tuple(self._texts))

    @workflow.query
    def has(self, note: Note) -> bool:
        return note.text in self._texts


def json_payload(text: bytes | str) -> Payload:
    """A payload with exactly these bytes as its JSON."""
    data = text.encode() if isinstance(text, str) else text
    return Payload(metadata={"encoding": b"json/plain"}, data=data)


GOOD = json_payload('{"text": "good"}')

BAD: dict[str, tuple[list[Payload], Code]] = {
    "none": ([], Code.WIRE_MALFORMED),
    "null": ([Payload(metadata={"encoding": b"binary/null"})], Code.WIRE_MALFORMED),
    "json null": ([json_payload("null")], Code.WIRE_MALFORMED),
    "two": ([GOOD, GOOD], Code.WIRE_MALFORMED),
    "three": ([GOOD, GOOD, GOOD], Code.WIRE_MALFORMED),
    "number": ([json_payload("5")], Code.WIRE_MALFORMED),
    "list": ([json_payload("[]")], Code.WIRE_MALFORMED),
    "field of another type": ([json_payload('{"text": 5}')], Code.WIRE_MALFORMED),
    "unknown field": ([json_payload('{"text": "x", "colour": 1}')], Code.WIRE_MALFORMED),
    "missing field": ([json_payload("{}")], Code.WIRE_MALFORMED),
    "no data": ([json_payload("")], Code.WIRE_MALFORMED),
    "half a document": ([json_payload('{"text": ')], Code.WIRE_MALFORMED),
    "lone surrogate": ([json_payload('{"text": "\\ud800"}')], Code.WIRE_MALFORMED),
    "not UTF-8": ([json_payload(b'{"text": "\xff"}')], Code.WIRE_MALFORMED),
    "NaN": ([json_payload('{"text": "x", "payload": NaN}')], Code.WIRE_MALFORMED),
    "deep": ([json_payload('{"text": "x", "payload": ' + "[" * 150 + "]" * 150 + "}")], Code.WIRE_MALFORMED),
    "nesting bomb": ([json_payload("[" * 100_000)], Code.WIRE_MALFORMED),
    "huge number": ([json_payload('{"text": "x", "count": ' + "9" * 5_000 + "}")], Code.WIRE_MALFORMED),
    "bytes": ([Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\x01")], Code.WIRE_MALFORMED),
    "protobuf": ([Payload(metadata={"encoding": b"binary/protobuf"}, data=b"\x08")], Code.WIRE_MALFORMED),
    "unknown encoding": ([Payload(metadata={"encoding": b"xml\xff"}, data=b"<a/>")], Code.WIRE_MALFORMED),
    "no encoding": ([Payload(data=b"{}")], Code.WIRE_MALFORMED),
    "forged marker": (
        [Payload(metadata={"encoding": b"turnwright/refused"}, data=b"[")],
        Code.WIRE_MALFORMED,
    ),
    "one MiB": ([json_payload('{"text": "' + "x" * 2**20 + '"}')], Code.WIRE_TOO_LARGE),
    "encrypted": (
        [Payload(metadata={"encoding": b"binary/encrypted"}, data=b"x" * 64)],
        Code.CODEC_ENCRYPTED,
    ),
}
"""What may lie in a message → the code that its sender gets to see."""


def raw(payloads: Iterable[Payload]) -> list[RawValue]:
    """Arguments that a plain client sends as these very payloads."""
    return [RawValue(payload) for payload in payloads]


def new_key() -> str:
    """A fresh key as a variable would hold it."""
    return base64.b64encode(os.urandom(32)).decode()


async def plain_client() -> Client:
    """A client of nobody in particular: the SDK's own converter, no codec."""
    return await Client.connect(shared_dev_server())


@asynccontextmanager
async def probe_worker(settings: Settings, *, sandbox: bool = False) -> AsyncIterator[Client]:
    """A worker with the probe; yields the client it runs on."""
    client = await connect(settings)
    passed = SandboxRestrictions.default.with_passthrough_modules(*PASSED)
    runner: WorkflowRunner = (
        SandboxedWorkflowRunner(restrictions=passed) if sandbox else UnsandboxedWorkflowRunner()
    )
    async with Worker(
        client,
        task_queue=settings.temporal.queue,
        workflows=[Probe],
        activities=[echo],
        interceptors=[WireInterceptor()],
        workflow_runner=QueriesLast(runner),
        disable_payload_error_limit=True,
    ):
        yield client


async def start_probe(client: Client, settings: Settings) -> WorkflowHandle[Probe, Seen]:
    """A running probe."""
    return await client.start_workflow(
        Probe.run, Note(text="start"), id=unique_queue("probe"), task_queue=settings.temporal.queue
    )


async def assert_goes_on(handle: WorkflowHandle[Probe, Seen]) -> None:
    """The workflow still hears messages, and ends well."""
    await handle.execute_update(Probe.add, Note(text="last"))
    await handle.signal(Probe.finish)
    assert (await handle.result()).texts[-1] == "last"
