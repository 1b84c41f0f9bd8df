"""Catalogue D: event streams and provider errors, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from email.utils import formatdate
from time import time

import pytest

from activities.models import CallLimits, Endpoint, OpenAIChat, WireError, close_shared_transport
from activities.models.wire import DEFAULT_LIMITS
from kernel.agent.messages import Message, ModelReply, ModelRequest, TextDelta
from kernel.errors import Code
from tests.support.model_server import ModelServer, Reply


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running
        await close_shared_transport()


async def ask(server: ModelServer, *replies: Reply, limits: CallLimits = DEFAULT_LIMITS) -> ModelReply:
    server.add(*replies)
    request = ModelRequest(model="m", messages=(Message(role="user", text="go"),))
    return await OpenAIChat().stream(
        request, Endpoint(server.url), idempotency_key="k", on_event=lambda event: None, limits=limits
    )


async def failure(server: ModelServer, reply: Reply, limits: CallLimits = DEFAULT_LIMITS) -> WireError:
    with pytest.raises(WireError) as caught:
        await ask(server, reply, limits=limits)
    assert len(server.calls) <= 1  # none when a limit passed before the connection stood
    return caught.value


def delta(text: str) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


DELTAS = delta("one ") + delta("two ") + delta("three")
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


@pytest.mark.parametrize("strange", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c"])
async def test_d1_only_cr_and_lf_end_a_line(server: ModelServer, strange: str) -> None:
    raw = b'data: {"choices":[{"delta":{"content":"a%sb"}}]}\n\n' % strange.encode()
    if strange in "\v\f\x1c":  # JSON wants these escaped; they still must not end a line of another field
        raw = b": comment %s\n" % strange.encode() + delta("ab")
    reply = await ask(server, Reply(raw=raw + STOP))
    assert reply.text.replace(strange, "") == "ab"


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
async def test_d1_every_proper_line_ending(server: ModelServer, ending: bytes) -> None:
    raw = (DELTAS + STOP).replace(b"\n", ending)
    assert (await ask(server, Reply(raw=raw, splits=list(range(0, len(raw), 7))))).text == "one two three"


@pytest.mark.parametrize("named", [b"event: error\n", b""])
async def test_d3_an_error_event_after_200_is_a_retryable_failure(server: ModelServer, named: bytes) -> None:
    error = b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    caught = await failure(server, Reply(raw=DELTAS + named + error))
    assert (caught.code, caught.retryable, caught.shown_text) == (Code.MODEL_OVERLOADED, True, True)


async def test_d3_the_finish_reason_error(server: ModelServer) -> None:
    caught = await failure(server, Reply(raw=DELTAS + STOP.replace(b"stop", b"error")))
    assert (caught.code, caught.retryable) == (Code.MODEL_OVERLOADED, True)


async def test_d4_a_stream_that_just_ends_is_incomplete(server: ModelServer) -> None:
    caught = await failure(server, Reply(raw=DELTAS))
    assert (caught.code, caught.reason) == (Code.MODEL_TRANSPORT, "incomplete")
    assert caught.retryable
    assert caught.shown_text


async def test_d4_a_connection_cut_in_mid_stream(server: ModelServer) -> None:
    caught = await failure(server, Reply(text="one two three four", cut_after=3))
    assert (caught.code, caught.reason, caught.retryable) == (Code.MODEL_TRANSPORT, "connection", True)


@pytest.mark.parametrize("end", [STOP, b"data: [DONE]\n\n", STOP + b"data: [DONE]\n\n"])
async def test_d4_any_one_terminal_mark_is_enough(server: ModelServer, end: bytes) -> None:
    assert (await ask(server, Reply(raw=DELTAS + end))).text == "one two three"


async def test_d4_a_cut_after_the_finish_reason_loses_only_the_usage(server: ModelServer) -> None:
    raw = DELTAS + STOP
    reply = await ask(server, Reply(raw=raw + b"data: [DONE]\n\n", splits=[len(raw)], cut_after=1))
    assert (reply.text, reply.finish, reply.usage.reported) == ("one two three", "stop", False)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
async def test_d6_overload_is_retryable(server: ModelServer, status: int) -> None:
    body = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    caught = await failure(server, Reply(status=status, body=body))
    assert (caught.code, caught.retryable, caught.status) == (Code.MODEL_OVERLOADED, True, status)
    assert caught.reason == "overloaded_error"


NESTED = {
    "type": "error",
    "error": {"type": "api_error", "message": {"why": {"deep": "cause"}}},
    "request_id": "req_7",
}


async def test_d7_a_nested_cause_keeps_type_message_and_request_id(server: ModelServer) -> None:
    raw = DELTAS + b"event: error\ndata: " + json.dumps(NESTED).encode() + b"\n\n"
    caught = await failure(server, Reply(raw=raw))
    assert caught.reason == "api_error"
    assert '"deep": "cause"' in caught.message
    assert caught.request_id == "req_7"


@pytest.mark.parametrize(
    "body",
    [
        '{"error":"cause"}',
        '{"message":"cause"}',
        '{"detail":"cause"}',
        '[{"error":{"message":"cause"}}]',
        "cause",
    ],
)
async def test_d7_the_message_is_found_in_every_wrapping(server: ModelServer, body: str) -> None:
    caught = await failure(server, Reply(status=400, body=body, headers={"X-Request-Id": "req_8"}))
    assert (caught.code, caught.retryable, caught.request_id) == (Code.MODEL_REQUEST, False, "req_8")
    assert "cause" in caught.message


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("20", 20.0),
        ("6m0s", 360.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("", None),
        ("-1", None),
        ("nan", None),
        ("1e9", 3600.0),
    ],
)
async def test_d8_retry_after_of_a_429(server: ModelServer, header: str, wait: float | None) -> None:
    caught = await failure(server, Reply(status=429, body="{}", headers={"Retry-After": header}))
    assert (caught.code, caught.retryable, caught.retry_after_s) == (Code.MODEL_RATE_LIMIT, True, wait)


async def test_d8_retry_after_as_a_date_to_come(server: ModelServer) -> None:
    header = formatdate(time() + 60, usegmt=True)
    caught = await failure(server, Reply(status=429, body="{}", headers={"Retry-After": header}))
    assert caught.retry_after_s == pytest.approx(60, abs=5)


PATIENT = CallLimits(first_token_s=20, idle_s=20, total_s=20)


async def test_d12_silence_in_mid_stream(server: ModelServer) -> None:
    limits = CallLimits(first_token_s=20, idle_s=0.05, total_s=20)
    caught = await failure(server, Reply(text="one two", stall_after=2), limits)
    assert (caught.reason, caught.retryable, caught.shown_text) == ("idle-timeout", True, True)


async def test_d12_no_first_token(server: ModelServer) -> None:
    limits = CallLimits(first_token_s=0.05, idle_s=20, total_s=20)
    caught = await failure(server, Reply(text="one two", stall_after=1), limits)
    assert (caught.reason, caught.shown_text) == ("first-token-timeout", False)


async def test_d12_the_total(server: ModelServer) -> None:
    limits = CallLimits(first_token_s=20, idle_s=20, total_s=0.05)
    caught = await failure(server, Reply(text="one two", stall_after=2), limits)
    assert caught.reason == "total-timeout"


async def test_d12_silence_after_the_finish_reason_still_gives_the_reply(server: ModelServer) -> None:
    raw = DELTAS + STOP
    limits = CallLimits(first_token_s=20, idle_s=0.05, total_s=20)
    reply = await ask(server, Reply(raw=raw, stall_after=1), limits=limits)
    assert reply.text == "one two three"


async def test_d12_a_slow_but_living_stream_is_not_cut(server: ModelServer) -> None:
    server.add(Reply(text="one two", hold=True))
    request = ModelRequest(model="m", messages=(Message(role="user", text="go"),))
    seen: list[str] = []

    def release(event: object) -> None:
        if isinstance(event, TextDelta):
            seen.append(event.text)
            server.release()

    reply = await OpenAIChat().stream(
        request, Endpoint(server.url), idempotency_key="k", on_event=release, limits=PATIENT
    )
    assert (reply.text, "".join(seen)) == ("one two", "one two")
