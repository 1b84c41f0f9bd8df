"""The chat-completions wire against real HTTP."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.models import (
    WIRES,
    CallLimits,
    Endpoint,
    OpenAIChat,
    Slot,
    WireError,
    close_shared_transport,
    load_slots,
    openai_chat,
    shared_transport,
)
from activities.models.sse import EventTooLarge, ServerEvent, SseDecoder
from activities.models.wire import DEFAULT_LIMITS
from kernel.agent.messages import (
    Finished,
    Message,
    ModelReply,
    ModelRequest,
    ReplyBuilder,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from kernel.errors import Code, TurnwrightError
from tests.support.model_server import Call, ModelServer, Reply, read_log, write_script
from tests.support.server_process import started

USER = Message(role="user", text="I open the door.")


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running
        await close_shared_transport()


async def ask(
    server: ModelServer,
    *replies: Reply,
    events: list[Any] | None = None,
    endpoint: Endpoint | None = None,
    limits: CallLimits = DEFAULT_LIMITS,
    key: str = "k",
    **request: Any,
) -> ModelReply:
    server.add(*replies)
    asked = ModelRequest.model_validate({"model": "m", "messages": (USER,), **request})
    seen: list[Any] = [] if events is None else events
    return await OpenAIChat().stream(
        asked, endpoint or Endpoint(server.url), idempotency_key=key, on_event=seen.append, limits=limits
    )


async def failure(server: ModelServer, reply: Reply, **how: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        await ask(server, reply, **how)
    server.assert_calls(1)
    return caught.value


RICH = Reply(
    text="Die Tür öffnet sich — 🚪\u2028still.",
    reasoning="Hmm, eine Tür…",
    tool_calls=[
        Call(name="roll", id="a", arguments='{"sides": 6, "why": "überraschung 🎲"}'),
        Call(name="note", id=None, arguments='{"text": "' + "lang " * 20 + '"}'),
    ],
    input_tokens=11,
    output_tokens=7,
)


def rich_bytes() -> bytes:
    """The stream with raw UTF-8 where the encoder would escape, so that cuts fall inside characters."""
    events = [
        b"data: " + json.dumps(json.loads(event[6:]), ensure_ascii=False).encode() + b"\r\n\r\n"
        for event in RICH.chunks()
        if event != b"data: [DONE]\n\n"
    ]
    return b": hello\r\n\r\n" + b"".join(events) + b"data: [DONE]\n\n"


RICH_BYTES = rich_bytes()


@pytest.fixture(scope="module")
def loop_and_server() -> Iterator[tuple[asyncio.Runner, ModelServer]]:
    with asyncio.Runner() as runner:
        server = ModelServer()
        runner.run(server.start())
        yield runner, server
        runner.run(close_shared_transport())
        runner.run(server.close())


@settings(max_examples=60, deadline=None)
@given(splits=st.lists(st.integers(1, len(RICH_BYTES) - 1), max_size=40))
def test_any_split_of_the_stream_gives_the_same_reply(
    loop_and_server: tuple[asyncio.Runner, ModelServer], splits: list[int]
) -> None:
    runner, server = loop_and_server
    events: list[Any] = []
    reply = runner.run(ask(server, Reply(raw=RICH_BYTES, splits=splits), events=events))
    assert reply.text == RICH.text
    assert reply.reasoning_text == RICH.reasoning
    assert [call.arguments for call in reply.tool_calls] == [call.arguments for call in RICH.tool_calls]
    assert reply.usage == Usage(input_tokens=11, output_tokens=7, reported=True)
    builder = ReplyBuilder()
    for event in events:
        builder.feed(event)
    assert builder.reply() == reply


@given(st.data())
def test_the_event_decoder_does_not_see_chunk_borders(data: st.DataObject) -> None:
    stream = "event: a\rdata: 1\r\ndata: ü\n\n: c\n\ndata\nid: 3\n\r\ndata:x\r\r".encode()
    at = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    bounds = [0, *at, len(stream)]
    decoder = SseDecoder()
    found = [event for a, b in pairwise(bounds) for event in decoder.feed(stream[a:b])]
    assert found == [ServerEvent("a", "1\nü"), ServerEvent("", ""), ServerEvent("", "x")]


def test_an_event_is_bounded_and_comments_are_not_counted() -> None:
    decoder = SseDecoder(max_event_chars=100)
    for _ in range(50):
        assert list(decoder.feed(b": sign of life\n")) == []
    with pytest.raises(EventTooLarge):
        list(decoder.feed(b"data: " + b"x" * 101))


async def test_the_request_as_sent(server: ModelServer) -> None:
    call = ToolCall(id="c1", name="roll", arguments='{"a": 1')
    messages = (
        Message(role="system", text="Narrate."),
        USER,
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", text="no", tool_call_id="c1"),
    )
    await ask(
        server,
        Reply(text="ok"),
        messages=messages,
        tools=(ToolSpec(name="roll", description="Roll."),),
        tool_choice="required",
        output_schema={"type": "object"},
        temperature=0.5,
        max_output_tokens=99,
        reasoning=False,
        endpoint=Endpoint(server.url, "sekret-key-1", {"thinking": {"type": "disabled"}}),
        key="turn/s1/t1:chronicle~story:3\n€",
    )
    sent = server.calls[0]
    assert sent.authorization == "Bearer sekret-key-1"
    assert sent.idempotency_key == "turn/s1/t1:chronicle~story:3%0A%E2%82%AC"
    function = {"name": "roll", "description": "Roll.", "parameters": {"type": "object"}}
    assert sent.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Narrate."},
            {"role": "user", "content": "I open the door."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "roll", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "content": "no", "tool_call_id": "c1"},
        ],
        "max_tokens": 99,
        "temperature": 0.5,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "output", "schema": {"type": "object"}},
        },
        "stream": True,
        "stream_options": {"include_usage": True},
        "thinking": {"type": "disabled"},
    }


async def test_equal_requests_are_equal_bytes(server: ModelServer) -> None:
    await ask(server, Reply(text="a", times=2))
    await ask(server)
    assert server.calls[0].raw_body == server.calls[1].raw_body


async def test_a_surrogate_pair_split_between_chunks_is_one_character(server: ModelServer) -> None:
    chunks = [r"a\ud83d", r"\ude00b\udc00", "c"]
    raw = "".join(f'data: {{"choices":[{{"delta":{{"content":"{one}"}}}}]}}\n\n' for one in chunks)
    events: list[Any] = []
    reply = await ask(server, Reply(raw=raw.encode() + b"data: [DONE]\n\n"), events=events)
    assert reply.text == "a\U0001f600b\ufffdc"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text


@pytest.mark.parametrize("stream", [True, False])
async def test_streamed_and_whole_answers_are_the_same(server: ModelServer, stream: bool) -> None:
    events: list[Any] = []
    reply = await ask(server, RICH, events=events, stream=stream)
    assert reply.text == RICH.text
    assert reply.reasoning_text == RICH.reasoning
    assert [(call.id, call.name) for call in reply.tool_calls] == [("a", "roll"), ("", "note")]
    assert (reply.finish, reply.model) == ("tool_calls", "scripted")
    assert isinstance(events[-1], Finished)


async def test_a_server_that_ignores_stream(server: ModelServer) -> None:
    body = '{"choices":[{"message":{"content":[{"type":"text","text":"ok"}]},"finish_reason":"stop"}]}'
    assert (await ask(server, Reply(body=body))).text == "ok"


async def test_arguments_as_an_object_and_cached_tokens(server: ModelServer) -> None:
    body = {
        "choices": [
            {
                "message": {"tool_calls": [{"function": {"name": "roll", "arguments": {"sides": 6}}}]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    }
    reply = await ask(server, Reply(body=json.dumps(body)))
    assert reply.tool_calls[0].arguments == '{"sides": 6}'
    assert reply.usage == Usage(input_tokens=9, output_tokens=2, cached_tokens=4, reported=True)


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": "9"}, {"prompt_tokens": -1, "completion_tokens": 1}, []]
)
async def test_unusable_usage_is_not_reported(server: ModelServer, usage: Any) -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    assert not (await ask(server, Reply(body=json.dumps(body)))).usage.reported


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, Code.MODEL_REQUEST, False),
        (401, Code.MODEL_AUTH, False),
        (403, Code.MODEL_AUTH, False),
        (404, Code.MODEL_REQUEST, False),
        (408, Code.MODEL_TRANSPORT, True),
        (422, Code.MODEL_REQUEST, False),
        (429, Code.MODEL_RATE_LIMIT, True),
        (307, Code.MODEL_REQUEST, False),
    ],
)
async def test_classes_of_refusal(server: ModelServer, status: int, code: Code, retryable: bool) -> None:
    caught = await failure(server, Reply(status=status, body='{"error":{"message":"no"}}'))
    assert (caught.code, caught.retryable, caught.status) == (code, retryable, status)
    assert not caught.shown_text


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "too long"},
        {"type": "invalid_request_error", "message": "prompt is too long: 214676 tokens > 200000 maximum"},
        {"message": "This model's maximum context length is 8192 tokens."},
    ],
)
async def test_c7_context_overflow_is_one_class(server: ModelServer, error: dict[str, str]) -> None:
    caught = await failure(server, Reply(status=400, body=json.dumps({"error": error})))
    assert (caught.code, caught.retryable) == (Code.MODEL_CONTEXT, False)


async def test_a_spent_quota_is_not_worth_a_retry(server: ModelServer) -> None:
    body = '{"error":{"type":"insufficient_quota","message":"pay"}}'
    caught = await failure(server, Reply(status=429, body=body))
    assert (caught.code, caught.retryable) == (Code.MODEL_RATE_LIMIT, False)


async def test_a_refused_forced_tool_is_named(server: ModelServer) -> None:
    body = '{"error":{"message":"tool_choice required is not supported in thinking mode"}}'
    assert (await failure(server, Reply(status=400, body=body))).reason == "tool-choice"


async def test_a_refusal_is_not_text(server: ModelServer) -> None:
    body = '{"choices":[{"message":{"content":null,"refusal":"I will not."},"finish_reason":"stop"}]}'
    caught = await failure(server, Reply(body=body))
    assert (caught.code, caught.retryable, caught.message) == (Code.MODEL_REFUSAL, False, "I will not.")


async def test_nothing_listens() -> None:
    async with ModelServer() as gone:
        url = gone.url
    with pytest.raises(WireError) as caught:
        await OpenAIChat().stream(
            ModelRequest(model="m", messages=(USER,)), Endpoint(url), idempotency_key="k", on_event=print
        )
    await close_shared_transport()
    assert (caught.value.code, caught.value.reason) == (Code.MODEL_TRANSPORT, "connect")
    assert caught.value.retryable


async def test_malformed_data_and_empty_answers(server: ModelServer) -> None:
    caught = await failure(server, Reply(raw=b"data: {oops\n\n"))
    assert (caught.reason, caught.retryable) == ("malformed", True)
    server.calls.clear()
    assert (await failure(server, Reply(body="{}"))).reason == "incomplete"


@pytest.mark.parametrize("key", ["sk-a", "sk-very-secret", 'sk-"quoted"\\'])
@pytest.mark.parametrize(
    "reply",
    [
        lambda key: Reply(
            status=401, body=json.dumps({"error": {"message": f"Incorrect API key provided: {key}."}})
        ),
        lambda key: Reply(status=401, body=json.dumps({"error": {"message": {"key": key}}})),
        lambda key: Reply(status=401, body=json.dumps({"error": {"type": key, "request_id": key}})),
        lambda key: Reply(status=401, body="no", headers={"x-request-id": key}),
        lambda key: Reply(status=500, body="x" * (798 - len(key)) + key + "x" * 10),
        lambda key: Reply(raw=b"data: " + b"x" * 190 + key.encode() + b"\n\n"),
        lambda key: Reply(raw=b"data: " + json.dumps({"error": {"message": key}}).encode() + b"\n\n"),
        lambda key: Reply(
            body=json.dumps({"choices": [{"message": {"refusal": key}, "finish_reason": "stop"}]})
        ),
    ],
    ids=["message", "object", "type", "header", "cut", "malformed", "mid-stream", "refusal"],
)
async def test_the_key_never_shows(server: ModelServer, key: str, reply: Callable[[str], Reply]) -> None:
    endpoint = Endpoint(server.url, key)
    caught = await failure(server, reply(key), endpoint=endpoint)
    shown = [repr(endpoint), str(caught), caught.reason, caught.request_id]
    assert not [text for text in shown if key in text or key[: len(key) - 2] in text]


async def test_responses_are_bounded(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_chat, "MAX_RESPONSE_BYTES", 1000)
    caught = await failure(server, Reply(text="word " * 100))
    assert (caught.reason, caught.retryable) == ("too-large", False)
    server.calls.clear()
    assert (await failure(server, Reply(text="word " * 400), stream=False)).reason == "too-large"
    server.calls.clear()
    assert len((await failure(server, Reply(status=500, body="x" * 500_000))).message) <= 800


@pytest.mark.parametrize(
    "end", [b"data: [DONE]", b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n']
)
async def test_a_last_event_without_its_blank_line(server: ModelServer, end: bytes) -> None:
    raw = b'data: {"choices":[{"delta":{"content":"ok"}}]}\n\n'
    assert (await ask(server, Reply(raw=raw + end))).text == "ok"
    server.calls.clear()
    assert (await failure(server, Reply(raw=raw + b'data: {"choices":[{"del'))).reason == "incomplete"


async def test_a_server_that_does_not_close_after_done(server: ModelServer) -> None:
    assert (await ask(server, Reply(text="ok", stall_after=99))).text == "ok"


async def test_one_connection_serves_many_calls(server: ModelServer) -> None:
    for _ in range(3):
        await ask(server, Reply(text="ok"))
    assert server.connections == 1


async def test_usage_of_a_failed_stream_is_kept(server: ModelServer) -> None:
    raw = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}\n\n'
    caught = await failure(server, Reply(raw=raw))
    assert caught.usage == Usage(input_tokens=5, output_tokens=3, reported=True)


async def test_cancelling_closes_the_connection(server: ModelServer) -> None:
    started = asyncio.Event()
    server.add(Reply(text="one two", stall_after=2))
    task = asyncio.create_task(
        OpenAIChat().stream(
            ModelRequest(model="m", messages=(USER,)),
            Endpoint(server.url),
            idempotency_key="k",
            on_event=lambda event: started.set(),
        )
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_wire_error_survives_pickling() -> None:
    error = WireError(
        Code.MODEL_OVERLOADED, "busy", retryable=True, reason="x", retry_after_s=2, shown_text=True
    )
    copy = pickle.loads(pickle.dumps(error))
    assert vars(copy) == vars(error)


async def test_connections_are_shared() -> None:
    transport = shared_transport()
    assert transport is shared_transport()
    await close_shared_transport()
    assert shared_transport() is not transport
    await close_shared_transport()


async def test_the_environments_proxies_are_not_heard(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await ask(server, Reply(text="Here."))).text == "Here."


def test_slots_by_default() -> None:
    slot = load_slots({"story": {"base_url": "https://api.example/v1/", "model": "m"}})["story"]
    assert (slot.base_url, slot.context_window, slot.max_output_tokens) == (
        "https://api.example/v1",
        262144,
        16384,
    )
    assert slot.wire in WIRES
    assert slot.endpoint({}).api_key == ""


def test_slot_limits_and_costs() -> None:
    slot = Slot(
        base_url="http://127.0.0.1:1",
        model="m",
        context_window=8000,
        price_input=Decimal(2),
        price_output=Decimal("0.5"),
    )
    assert slot.output_limit == 4000
    assert slot.cost(Usage(input_tokens=1000, output_tokens=2000)) == Decimal("0.003")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "ftp://x"),
        ("base_url", "https://user:pw-in-url@x"),
        ("base_url", "not a url"),
        ("model", ""),
        ("api_key_env", "sk-pasted-key"),
        ("context_window", 0),
        ("max_output_tokens", -1),
        ("price_input", "nan"),
        ("price_output", -1),
        ("wire", "telepathy"),
        ("surprise", 1),
    ],
)
def test_bad_slot_values_are_refused_by_name_and_not_repeated(field: str, value: Any) -> None:
    with pytest.raises(TurnwrightError) as caught:
        load_slots({"story": {"base_url": "https://x", "model": "m", field: value}})
    assert caught.value.code == Code.CONFIG_INVALID
    assert caught.value.where == f"slots.story.{field}"
    assert "sk-pasted" not in str(caught.value)
    assert "pw-in-url" not in str(caught.value)


def test_a_fallback_is_refused_by_name() -> None:
    with pytest.raises(TurnwrightError) as refused:
        load_slots({"story": {"base_url": "http://x", "model": "m", "fallback": "other"}})
    assert (refused.value.code, refused.value.where) == (Code.NOT_SUPPORTED, "slots.story.fallback")


@pytest.mark.parametrize(
    ("value", "state"), [(None, "is not set"), (" \n", "is not set"), ("schlüssel", "no usable key")]
)
def test_a_missing_key_is_refused_by_the_variable_name(value: str | None, state: str) -> None:
    slot = Slot(base_url="http://x", model="m", api_key_env="STORY_KEY")
    with pytest.raises(WireError, match=f"STORY_KEY.*{state}") as caught:
        slot.endpoint({} if value is None else {"STORY_KEY": value})
    assert (caught.value.code, caught.value.retryable) == (Code.MODEL_AUTH, False)


def test_the_key_is_read_at_call_time_and_trimmed() -> None:
    slot = Slot(base_url="http://x", model="m", api_key_env="STORY_KEY")
    assert slot.endpoint({"STORY_KEY": "abc\n"}).api_key == "abc"


async def test_the_scripted_server_as_a_process(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "calls.jsonl"
    write_script(script, [Reply(raw=b"data: [DONE]\n\n", when="second"), Reply(text="held on", hold=True)])
    request = ModelRequest(model="m", messages=(USER,))
    async with started("tests.support.model_server", "--script", str(script), "--log", str(log)) as url:

        def release(event: object) -> None:
            if isinstance(event, TextDelta):
                httpx.post(url.removesuffix("/v1") + "/release", trust_env=False)

        reply = await OpenAIChat().stream(request, Endpoint(url), idempotency_key="t:1", on_event=release)
        await close_shared_transport()
    assert reply.text == "held on"
    assert [call.idempotency_key for call in read_log(log)] == ["t:1"]
