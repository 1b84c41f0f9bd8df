"""Judging the calls of a reply: ids, digests, transcript, and the edges that no reported case names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.agent.calls import (
    JudgedCall,
    call_id,
    hit_output_limit,
    judge_calls,
    transcript_message,
)
from kernel.agent.messages import Finish, ModelReply, ToolCall, ToolSpec, Usage
from kernel.errors import Code

ROLL = ToolSpec(
    name="roll",
    parameters={
        "type": "object",
        "properties": {
            "sides": {"type": "integer", "minimum": 2},
            "notes": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": False,
    },
)


def judge(*arguments: str, finish: Finish = "tool_calls", cut: bool = False) -> tuple[JudgedCall, ...]:
    calls = tuple(ToolCall(name="roll", arguments=raw) for raw in arguments)
    reply = ModelReply(tool_calls=calls, finish=finish)
    return judge_calls(reply, [ROLL], run_id="agent/t1/chronicle~story", step=0, may_be_truncated=cut)


def only(raw: str, *, cut: bool = False) -> JudgedCall:
    return judge(raw, cut=cut)[0]


def code(call: JudgedCall) -> Code | None:
    return call.error.code if call.error else None


def test_a_good_call_carries_its_arguments() -> None:
    call = only('{"sides": 6}')
    assert (call.name, call.arguments, call.error) == ("roll", {"sides": 6}, None)


@pytest.mark.parametrize("raw", ["", "  ", "\n"])
def test_blank_arguments_mean_none_were_needed(raw: str) -> None:
    assert only(raw).arguments == {}
    assert code(only(raw, cut=True)) == Code.MODEL_TRUNCATED


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 100_000,
        '{"a":' * 80 + "1" + "}" * 80,
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5000 + "}",
    ],
)
def test_hostile_arguments_are_refused_not_raised(raw: str) -> None:
    call = only(raw)
    assert code(call) == Code.TOOL_ARGUMENTS
    assert call.arguments is None
    assert call.error is not None
    assert len(call.error.message) < 1000


@given(st.text(max_size=200), st.booleans())
def test_judging_is_total_and_never_invents_arguments(raw: str, cut: bool) -> None:
    call = only(raw, cut=cut)
    if call.arguments is None:
        assert call.error is not None
    elif raw.strip():
        assert json.loads(raw) == call.arguments or "\\u" in raw


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4), st.data())
def test_every_real_prefix_of_an_object_is_truncated(value: dict[str, object], data: st.DataObject) -> None:
    raw = json.dumps(value)
    prefix = raw[: data.draw(st.integers(0, len(raw) - 1))]
    assert code(only(prefix, cut=True)) == Code.MODEL_TRUNCATED
    assert only(prefix, cut=True).arguments is None


def test_schema_errors_name_fields_and_are_bounded() -> None:
    call = only(json.dumps({"sides": "x" * 5000, "notes": ["a", 2], "extra": 1}))
    assert code(call) == Code.TOOL_VALIDATION
    assert call.error is not None
    for place in ("sides: ", "notes[1]: ", "arguments: Additional properties"):
        assert place in call.error.message
    assert len(call.error.message) < 1200


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"$ref": "http://127.0.0.1:9/x.json"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"properties": {"a": {"pattern": "("}}},
    ],
)
def test_a_broken_schema_refuses_the_call_and_nothing_more(schema: dict[str, object]) -> None:
    reply = ModelReply(tool_calls=(ToolCall(name="t", arguments='{"a": "b"}'),))
    spec = ToolSpec(name="t", parameters=schema)
    (call,) = judge_calls(reply, [spec], run_id="r", step=0, may_be_truncated=False)
    assert code(call) == Code.TOOL_VALIDATION


def test_digest_ignores_spelling_but_not_content() -> None:
    one, same, other, bad, same_bad = judge('{"sides":6}', ' {"sides" : 6.0} ', '{"sides":8}', "{", "{")
    assert one.digest == same.digest != other.digest
    assert bad.digest == same_bad.digest != one.digest
    assert len(one.digest) == 20


@given(st.text(max_size=20), st.integers(0, 1000), st.integers(0, 1000))
def test_ids_are_nine_letters_and_digits(run: str, step: int, index: int) -> None:
    made = call_id(run, step, index)
    assert len(made) == 9
    assert made.isalnum()
    assert made.isascii()
    assert made == call_id(run, step, index)


def test_ids_of_a_run_are_unique() -> None:
    made = {call_id("r", step, index) for step in range(60) for index in range(60)}
    assert len(made) == 3600


@pytest.mark.parametrize(
    ("reply", "hit"),
    [
        (ModelReply(finish="length"), True),
        (ModelReply(finish="tool_calls", usage=Usage(output_tokens=100, reported=True)), True),
        (ModelReply(finish="tool_calls", usage=Usage(output_tokens=99, reported=True)), False),
        (ModelReply(finish="stop"), False),
    ],
)
def test_output_limit(reply: ModelReply, hit: bool) -> None:
    assert hit_output_limit(reply, 100) is hit


def test_transcript_holds_judged_ids_and_parseable_arguments() -> None:
    raws = ('{"sides": 6}', '{"sides": 6,}', "null", '{"notes": ["\\ud800"]}')
    reply = ModelReply(
        text="I roll.", tool_calls=tuple(ToolCall(id="x", name="roll", arguments=raw) for raw in raws)
    )
    judged = judge_calls(reply, [ROLL], run_id="r", step=2, may_be_truncated=False)
    message = transcript_message(reply, judged)
    assert [call.id for call in message.tool_calls] == [call.id for call in judged]
    assert [call.arguments for call in message.tool_calls] == [raws[0], "{}", "{}", '{"notes": ["\ufffd"]}']
