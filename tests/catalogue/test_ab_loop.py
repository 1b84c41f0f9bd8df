"""Catalogue A and B, as far as the agent loop decides them."""

from __future__ import annotations

import pytest

from kernel.agent.loop import AgentLoop, Ask, Done, RunTools
from kernel.errors import Code
from kernel.wire.agent import AgentSpec, CallOutline, ModelStep, ToolOutcome
from kernel.wire.usage import UsageTotals

PAID = UsageTotals(calls=1, input_tokens=100, output_tokens=20)
OK = ToolOutcome(ok=True)


def loop(**fields: object) -> AgentLoop:
    made = AgentLoop(AgentSpec.model_validate({"slot": "plugin", **fields}))
    made.start()
    return made


def reply(*calls: CallOutline, **fields: object) -> ModelStep:
    return ModelStep.model_validate({"calls": calls, "usage": PAID, **fields})


def call(n: int, error: Code | None = None) -> CallOutline:
    return CallOutline(id=f"c{n}", name="get", digest=f"d{n}", error=error)


def malformed(n: int) -> CallOutline:
    return call(n, Code.TOOL_ARGUMENTS)


def test_a5_good_calls_run_once_and_the_malformed_one_does_not() -> None:
    step = loop().on_reply(reply(call(1), malformed(2), call(3)))
    assert isinstance(step, RunTools)
    assert [(planned.index, planned.call.id) for planned in step.calls] == [(0, "c1"), (2, "c3")]


def test_a5_the_usage_of_a_reply_that_is_all_malformed_counts() -> None:
    run = loop()
    run.on_reply(reply(malformed(1), malformed(2)))
    done = run.on_reply(reply(text=True))
    assert isinstance(done, Done)
    assert done.usage == PAID + PAID


@pytest.mark.parametrize("calls_per_reply", [1, 5])
def test_a5_the_budget_counts_replies_not_calls(calls_per_reply: int) -> None:
    run = loop(loop_detection=0, loop_perturbations=0)
    for attempt in (1, 2):
        step = run.on_reply(reply(*(malformed(attempt * 10 + n) for n in range(calls_per_reply))))
        assert isinstance(step, Ask), f"stopped after {attempt} replies"
    done = run.on_reply(reply(*(malformed(30 + n) for n in range(calls_per_reply))))
    assert isinstance(done, Done)
    assert (done.status, done.reason) == ("failed", Code.AGENT_LOOP)


def test_a13_prose_instead_of_json_is_asked_again_then_a_typed_failure() -> None:
    run = loop(schema_ending=True)
    step = run.on_reply(reply(text=True, ending="invalid"))
    assert step == Ask(2, "none", "output-repair")
    done = run.on_reply(reply(text=True, ending="invalid"))
    assert isinstance(done, Done)
    assert (done.status, done.reason) == ("failed", Code.RUNTIME_OUTPUT)


def test_a14_two_bad_outputs_then_a_good_one_recover() -> None:
    run = loop(schema_ending=True, output_repairs=2)
    for _ in range(2):
        assert isinstance(run.on_reply(reply(text=True, ending="invalid")), Ask)
    done = run.on_reply(reply(text=True, ending="valid"))
    assert isinstance(done, Done)
    assert done.status == "success"


def test_b9_an_empty_reply_after_tools_is_nudged_and_then_fails_by_name() -> None:
    run = loop()
    run.on_reply(reply(call(1)))
    run.on_results([OK])
    for _ in range(3):
        step = run.on_reply(reply(finish="stop"))
        assert isinstance(step, Ask)
        assert step.nudge == "empty-reply"
    done = run.on_reply(reply(finish="stop"))
    assert isinstance(done, Done)
    assert (done.status, done.reason) == ("failed", Code.MODEL_EMPTY)


def test_b9_text_after_a_nudge_is_a_success() -> None:
    run = loop()
    run.on_reply(reply())
    done = run.on_reply(reply(text=True))
    assert isinstance(done, Done)
    assert done.status == "success"


@pytest.mark.parametrize(("terminal", "succeeds"), [("get", True), (None, False)])
def test_b10_silence_after_a_tool_is_success_where_the_tool_is_terminal(
    terminal: str | None, succeeds: bool
) -> None:
    run = loop(finish_with=terminal)
    run.on_reply(reply(call(1)))
    step = run.on_results([OK])
    if step == Ask(2, "auto"):
        step = run.on_reply(reply(finish="stop"))
    assert isinstance(step, Done) is succeeds
    assert not succeeds or (isinstance(step, Done) and step.status == "success" and step.usage == PAID)


@pytest.mark.parametrize("finish", ["other", "stop"])
def test_b11_reasoning_alone_counts_as_empty_and_is_capped(finish: str) -> None:
    run = loop()
    asked = 0
    step = run.on_reply(reply(finish=finish))
    while isinstance(step, Ask):
        asked += 1
        step = run.on_reply(reply(finish=finish))
    assert asked == 3
    assert isinstance(step, Done)
    assert step.reason == Code.MODEL_EMPTY
    assert step.usage.calls == 4
