"""Transcript models are clean by construction, and the builder does not care how an answer was cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kernel.agent.messages import (
    Finished,
    Message,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    ReplyBuilder,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolName,
    Usage,
    WireEvent,
    clean_json,
    clean_text,
)

Event = TextDelta | ReasoningDelta | ToolCallDelta | Finished


def cut(text: str, draw: st.DrawFn) -> Iterator[str]:
    while text:
        size = draw(st.integers(1, len(text)))
        yield text[:size]
        text = text[size:]


@st.composite
def chunked_replies(draw: st.DrawFn) -> tuple[ModelReply, list[Event]]:
    words = st.text(max_size=20)
    text, thinking = draw(words), draw(words)
    calls = draw(st.lists(st.builds(ToolCall, id=words, name=words, arguments=words), max_size=3))
    events: list[Event] = [ReasoningDelta(text=part) for part in cut(thinking, draw)]
    events += [TextDelta(text=part) for part in cut(text, draw)]
    for index, call in enumerate(calls):
        events.append(ToolCallDelta(index=index, id=call.id))
        events += [ToolCallDelta(index=index, name=part) for part in cut(call.name, draw)]
        events += [ToolCallDelta(index=index, arguments=part) for part in cut(call.arguments, draw)]
    end = Finished(finish="stop", usage=Usage(input_tokens=3, output_tokens=4, reported=True), model="m")
    reply = ModelReply(
        text=text, tool_calls=tuple(calls), finish="stop", usage=end.usage, reasoning_text=thinking, model="m"
    )
    return reply, [*events, end]


@given(chunked_replies())
def test_any_chunking_builds_the_same_reply(case: tuple[ModelReply, list[Event]]) -> None:
    reply, events = case
    builder = ReplyBuilder()
    for event in events:
        builder.feed(event)
    assert builder.finished
    assert builder.reply() == reply


def test_interleaved_calls_stay_apart() -> None:
    builder = ReplyBuilder()
    for index, part in [(1, '{"b"'), (0, '{"a"'), (1, ":2}"), (0, ":1}")]:
        builder.feed(ToolCallDelta(index=index, arguments=part))
    assert [call.arguments for call in builder.reply().tool_calls] == ['{"a":1}', '{"b":2}']


def test_a_fragment_is_not_finished() -> None:
    builder = ReplyBuilder()
    builder.feed(TextDelta(text="Once"))
    assert not builder.finished
    assert builder.reply().finish == "other"
    assert not builder.reply().usage.reported


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("plain", "plain"),
        ("ok \udc00 end", "ok \ufffd end"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("end \ud83d", "end \ufffd"),
        ("\ud83dx", "\ufffdx"),
    ],
)
def test_clean_text_replaces_lone_surrogates(dirty: str, clean: str) -> None:
    assert clean_text(dirty) == clean


@given(st.text(st.characters(codec=None, categories=None)))
def test_clean_text_always_encodes_and_is_idempotent(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert clean_text(cleaned) == cleaned


def test_clean_json_reaches_keys_and_depths() -> None:
    assert clean_json({"a\ud800": [{"b": "\udfff"}, 1, None]}) == {"a\ufffd": [{"b": "\ufffd"}, 1, None]}


def test_a_message_cannot_hold_a_lone_surrogate() -> None:
    message = Message(role="tool", text="ok \udc00 end", tool_call_id="1")
    assert message.text == "ok \ufffd end"
    assert message.model_dump_json()


def test_models_are_frozen_and_closed() -> None:
    with pytest.raises(ValidationError):
        Message(role="user", text="a").text = "b"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Message.model_validate({"role": "user", "content": "a"})


def test_requests_and_events_survive_json() -> None:
    request = ModelRequest(
        model="m", messages=(Message(role="user", text="hi"),), tool_choice=ToolName(name="roll")
    )
    assert ModelRequest.model_validate_json(request.model_dump_json()) == request
    adapter: TypeAdapter[Event] = TypeAdapter(WireEvent)
    delta = ToolCallDelta(index=0, name="roll")
    assert adapter.validate_json(adapter.dump_json(delta)) == delta
