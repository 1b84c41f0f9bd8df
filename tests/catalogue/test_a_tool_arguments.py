"""Catalogue A: what a model writes where arguments belong."""

from __future__ import annotations

import json

import pytest

from kernel.agent.calls import JudgedCall, hit_output_limit, judge_calls, transcript_message
from kernel.agent.messages import Finish, Message, ModelReply, ToolCall, ToolSpec, Usage
from kernel.agent.tool_arguments import ECHO_CHARS
from kernel.errors import Code

OPTIONAL = ToolSpec(
    name="write",
    parameters={"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}},
)


def judge(raw: str, *, finish: Finish = "tool_calls", output_tokens: int = 5, limit: int = 100) -> JudgedCall:
    usage = Usage(input_tokens=1, output_tokens=output_tokens, reported=True)
    reply = ModelReply(
        tool_calls=(ToolCall(id="c", name="write", arguments=raw),), finish=finish, usage=usage
    )
    cut = hit_output_limit(reply, limit)
    (call,) = judge_calls(reply, [OPTIONAL], run_id="run", step=0, may_be_truncated=cut)
    return call


def refusal(call: JudgedCall, code: Code) -> str:
    assert call.arguments is None
    assert call.error is not None
    assert call.error.code == code
    return call.error.message


def test_a1_code_instead_of_json() -> None:
    message = refusal(judge('query = """select 1"""'), Code.TOOL_ARGUMENTS)
    assert "line 1, column 1 (character 0)" in message
    assert 'query = """select 1"""' in message


@pytest.mark.parametrize(
    "raw", ['{"path": "a.txt",}', "{'path': 'a.txt'}", '{"path": "a.txt"} trailing', '{path: "a"}']
)
def test_a2_a_parse_failure_never_becomes_empty_arguments(raw: str) -> None:
    refusal(judge(raw), Code.TOOL_ARGUMENTS)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("null", "null"),
        ("[]", "array"),
        ('"str"', "string"),
        ("3", "number"),
        ("1.5", "number"),
        ("true", "boolean"),
    ],
)
def test_a4_valid_json_of_the_wrong_kind(raw: str, kind: str) -> None:
    assert f"object expected, got {kind}" in refusal(judge(raw), Code.TOOL_ARGUMENTS)


@pytest.mark.parametrize("raw", [json.dumps("x" * 50_000), "x" * 50_000])
def test_a4_the_echo_is_bounded_and_tells_the_true_length(raw: str) -> None:
    message = refusal(judge(raw), Code.TOOL_ARGUMENTS)
    assert len(message.partition("Received: ")[2]) <= ECHO_CHARS
    assert f"({len(raw)} characters)" in message


def test_a6_a_schema_violation_names_the_field() -> None:
    call = judge('{"n": "three"}')
    assert call.error is not None
    assert call.error.code == Code.TOOL_VALIDATION
    assert "n: 'three' is not of type 'integer'" in call.error.message


PARTIAL = '{"path":"/etc/hosts","content":"line1'


def test_a7_cut_at_the_length_limit() -> None:
    assert PARTIAL in refusal(judge(PARTIAL, finish="length"), Code.MODEL_TRUNCATED)


def test_a7_a_call_that_was_complete_before_the_cut_still_counts() -> None:
    assert judge('{"path": "a"}', finish="length").error is None


def test_a8_cut_although_the_server_says_tool_calls() -> None:
    refusal(judge(PARTIAL, output_tokens=100, limit=100), Code.MODEL_TRUNCATED)


def test_a8_the_cut_call_is_not_sent_back_verbatim() -> None:
    reply = ModelReply(tool_calls=(ToolCall(name="write", arguments=PARTIAL),), finish="tool_calls")
    judged = judge_calls(reply, [OPTIONAL], run_id="run", step=0, may_be_truncated=True)
    assert transcript_message(reply, judged).tool_calls[0].arguments == "{}"


@pytest.mark.parametrize("end", range(len(PARTIAL)))
def test_a10_any_partial_is_kept_for_diagnosis_only(end: int) -> None:
    assert PARTIAL[:end] in refusal(judge(PARTIAL[:end], finish="length"), Code.MODEL_TRUNCATED)


def test_a12_a_lone_surrogate_in_a_tool_result() -> None:
    message = Message(role="tool", tool_call_id="c", text="ok \udc00 end")
    assert message.text == "ok \ufffd end"
    message.model_dump_json().encode()


def test_a12_a_lone_surrogate_in_arguments() -> None:
    call = judge('{"path": "a\\udc00b", "\\ud800": 1}')
    assert call.arguments == {"path": "a\ufffdb", "\ufffd": 1}
    call.model_dump_json().encode()
