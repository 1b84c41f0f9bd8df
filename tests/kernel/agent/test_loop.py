"""The agent loop: what follows which reply. Spec: plugin-model §11.3, §11.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.agent.loop import EMPTY_REPLIES, NO_PROGRESS, AgentLoop, Ask, Done, RunTools, Step
from kernel.errors import Code, TurnwrightError
from kernel.wire.agent import AgentSpec, CallOutline, ModelStep, ToolFacts, ToolOutcome
from kernel.wire.failure import Failure
from kernel.wire.usage import UsageTotals

OK = ToolOutcome(ok=True)
BAD = ToolOutcome(ok=False, code=Code.TOOL_FAILED)
ONE = UsageTotals(calls=1, input_tokens=10, output_tokens=5, cost_usd=0.1)
PROSE = ModelStep(text=True, usage=ONE)
EMPTY = ModelStep(usage=ONE)
CUT = ModelStep(finish="length", usage=ONE)


def spec(**fields: object) -> AgentSpec:
    return AgentSpec.model_validate({"slot": "plugin", **fields})


def call(name: str, digest: str = "", error: Code | None = None) -> CallOutline:
    return CallOutline(id=f"c-{name}", name=name, digest=digest or name, error=error)


def calls(*outlines: CallOutline, **fields: object) -> ModelStep:
    return ModelStep.model_validate({"finish": "tool_calls", "calls": outlines, "usage": ONE, **fields})


def bad(name: str = "get", digest: str = "") -> CallOutline:
    return call(name, digest, Code.TOOL_ARGUMENTS)


def drive(loop: AgentLoop, *feeds: ModelStep | list[ToolOutcome]) -> Step:
    step = loop.start()
    for feed in feeds:
        step = loop.on_reply(feed) if isinstance(feed, ModelStep) else loop.on_results(feed)
    return step


def ends(step: Step) -> tuple[str, str]:
    assert isinstance(step, Done), step
    return step.status, step.reason


def asks(step: Step) -> tuple[int, str, str | None]:
    assert isinstance(step, Ask), step
    return step.step, step.tool_choice, step.nudge


# Prose and JSON endings


@pytest.mark.parametrize("story", [True, False])
def test_a_reply_of_text_ends_the_run(story: bool) -> None:
    done = drive(AgentLoop(spec(story=story)), PROSE)
    assert done == Done("success", "", "", ONE)


def test_the_first_request_is_step_one_and_free() -> None:
    assert asks(AgentLoop(spec()).start()) == (1, "auto", None)


def test_a_valid_schema_ending_ends_the_run() -> None:
    reply = ModelStep(text=True, ending="valid")
    assert ends(drive(AgentLoop(spec(schema_ending=True)), reply)) == ("success", "")


@pytest.mark.parametrize("ending", ["invalid", None])
def test_an_invalid_schema_ending_is_repaired_without_tools_then_fails(ending: str | None) -> None:
    loop = AgentLoop(spec(schema_ending=True))
    reply = ModelStep.model_validate({"text": True, "ending": ending})
    assert asks(drive(loop, reply)) == (2, "none", "output-repair")
    assert ends(loop.on_reply(reply)) == ("failed", "runtime.output-schema-invalid")


def test_a_story_needs_text_and_no_schema() -> None:
    reply = ModelStep(text=True, ending="invalid")
    assert ends(drive(AgentLoop(spec(story=True, schema_ending=True)), reply)) == ("success", "")


def test_empty_replies_are_nudged_three_times_in_all() -> None:
    loop = AgentLoop(spec())
    step = drive(loop, EMPTY, calls(call("get")), [OK])
    for _ in range(EMPTY_REPLIES - 1):
        step = loop.on_reply(EMPTY)
        assert isinstance(step, Ask)
        assert step.nudge == "empty-reply"
    assert ends(loop.on_reply(EMPTY)) == ("failed", "model.empty-reply")


# Failures of a reply


def test_a_failed_reply_fails_the_run_and_its_usage_counts() -> None:
    failed = ModelStep(failed=Failure(code=Code.MODEL_AUTH, message="no key"), usage=ONE)
    done = drive(AgentLoop(spec()), calls(call("get")), [OK], failed)
    assert done == Done("failed", Code.MODEL_AUTH, "no key", ONE + ONE)


def test_a_run_without_its_input_is_skipped_after_no_reply() -> None:
    skipped = ModelStep(skipped=Failure(code=Code.RUNTIME_INPUT, message="cast"))
    assert drive(AgentLoop(spec()), skipped) == Done("skipped", Code.RUNTIME_INPUT, "cast", UsageTotals())


# Tool calls


def test_planned_calls_keep_their_place_and_their_tools_facts() -> None:
    tools = {"set": ToolFacts(builtin=True), "buy": ToolFacts(gated=True)}
    loop = AgentLoop(spec(tools=tools, finish_with="end"))
    step = drive(loop, calls(call("set"), bad("set", "x"), call("buy"), call("end")))
    assert isinstance(step, RunTools)
    assert step.step == 1
    found = [(c.index, c.call.name, c.builtin, c.gated, c.finishing) for c in step.calls]
    assert found == [
        (0, "set", True, False, False),
        (2, "buy", False, True, False),
        (3, "end", False, False, True),
    ]


def test_after_results_the_model_is_asked_again() -> None:
    assert asks(drive(AgentLoop(spec()), calls(call("get")), [BAD])) == (2, "auto", None)


def test_a_required_tool_is_required_on_every_step() -> None:
    assert asks(drive(AgentLoop(spec(tool_choice="=get")), calls(call("get")), [OK])) == (2, "=get", None)


def test_a_reply_of_bad_calls_alone_goes_straight_to_the_next_request() -> None:
    assert asks(drive(AgentLoop(spec()), calls(bad()))) == (2, "auto", None)


def test_bad_calls_alone_three_times_in_a_row_count_as_a_loop() -> None:
    loop = AgentLoop(spec(loop_detection=0))
    replies = [calls(bad(digest=str(n))) for n in range(NO_PROGRESS + 1)]
    step = drive(loop, *replies[:NO_PROGRESS])
    assert asks(step) == (NO_PROGRESS + 1, "auto", "loop")
    done = loop.on_reply(replies[-1])
    assert ends(done) == ("failed", "agent.loop")


def test_one_good_call_is_progress() -> None:
    loop = AgentLoop(spec(loop_perturbations=0))
    bad_reply = [calls(bad(digest=str(n))) for n in range(4)]
    step = drive(loop, *bad_reply[:2], calls(bad(), call("get")), [OK], *bad_reply[2:])
    assert isinstance(step, Ask)


# finishWith


def test_a_completing_tool_ends_the_run_without_another_request() -> None:
    loop = AgentLoop(spec(finish_with="end"))
    assert asks(loop.start()) == (1, "required", None)
    loop.on_reply(calls(call("end")))
    assert ends(loop.on_results([OK])) == ("success", "")


@pytest.mark.parametrize(
    ("batch", "results"),
    [((call("end"), call("set")), [OK, BAD]), ((call("end"), bad("set")), [OK])],
    ids=["failed", "malformed"],
)
def test_a_completing_tool_beside_an_error_leaves_room_to_repair(batch: tuple, results: list) -> None:
    loop = AgentLoop(spec(finish_with="end"))
    assert asks(drive(loop, calls(*batch), results)) == (2, "auto", None)
    assert ends(loop.on_reply(EMPTY)) == ("success", "")


def test_a_failed_completing_tool_does_not_end_the_run() -> None:
    assert asks(drive(AgentLoop(spec(finish_with="end")), calls(call("end")), [BAD])) == (2, "required", None)


def test_ending_without_the_completing_tool_is_corrected_then_fails() -> None:
    loop = AgentLoop(spec(finish_with="end"))
    assert asks(drive(loop, PROSE)) == (2, "required", "tool-use")
    assert ends(loop.on_reply(PROSE)) == ("failed", "agent.unfinished")


def test_a_named_choice_is_kept_by_the_correction() -> None:
    loop = AgentLoop(spec(finish_with="end", tool_choice="=end"))
    assert asks(drive(loop, PROSE)) == (2, "=end", "tool-use")


# Step limit


def test_at_the_step_limit_the_answer_is_asked_for_without_tools() -> None:
    loop = AgentLoop(spec(max_steps=2))
    step = drive(loop, calls(call("a")), [OK], calls(call("b")), [OK])
    assert asks(step) == (3, "none", "final-answer")
    assert ends(loop.on_reply(PROSE)) == ("success", "")


def test_calls_in_a_reply_that_was_to_have_none_are_an_empty_ending() -> None:
    loop = AgentLoop(spec(max_steps=1))
    step = drive(loop, calls(call("a")), [OK], calls(call("b"), text=True))
    assert asks(step) == (3, "none", "empty-reply")


@pytest.mark.parametrize("fields", [{"final_answer": False}, {"finish_with": "end"}])
def test_at_the_step_limit_a_run_that_prose_cannot_complete_fails(fields: dict) -> None:
    step = drive(AgentLoop(spec(max_steps=1, **fields)), calls(call("a")), [OK])
    assert ends(step) == ("failed", "agent.step-limit")


def test_a_step_limit_after_the_completing_tool_is_a_success() -> None:
    step = drive(AgentLoop(spec(max_steps=1, finish_with="end")), calls(call("end"), call("a")), [OK, BAD])
    assert ends(step) == ("success", "")


def test_bad_replies_use_up_steps() -> None:
    step = drive(AgentLoop(spec(max_steps=2, final_answer=False)), calls(bad()), calls(bad(digest="2")))
    assert ends(step) == ("failed", "agent.step-limit")


# Loops


def repeat(loop: AgentLoop, times: int, *batch: CallOutline) -> Step:
    step: Step | None = None
    for _ in range(times):
        loop.on_reply(calls(*batch))
        step = loop.on_results([OK] * len(batch))
    assert step is not None
    return step


def test_a_repeated_batch_gets_a_nudge_and_one_more_fails() -> None:
    loop = AgentLoop(spec())
    loop.start()
    assert asks(repeat(loop, 2, call("a"))) == (3, "auto", None)
    assert asks(repeat(loop, 1, call("a"))) == (4, "auto", "loop")
    assert ends(repeat(loop, 1, call("a"))) == ("failed", "agent.loop")


def test_a_loop_may_fall_back_to_an_answer_without_tools() -> None:
    loop = AgentLoop(spec(fallback_answers=True, loop_perturbations=0))
    loop.start()
    assert asks(repeat(loop, 3, call("a"))) == (4, "none", "final-answer")
    assert ends(loop.on_reply(PROSE)) == ("success", "")


def test_a_fallback_that_cannot_complete_the_run_is_not_paid_for() -> None:
    loop = AgentLoop(spec(fallback_answers=True, loop_perturbations=0, finish_with="end"))
    loop.start()
    assert ends(repeat(loop, 3, call("a"))) == ("failed", "agent.loop")


def test_a_loop_after_the_completing_tool_is_a_success() -> None:
    loop = AgentLoop(spec(finish_with="end", loop_perturbations=0, loop_detection=1))
    loop.start()
    loop.on_reply(calls(call("end"), call("a")))
    assert ends(loop.on_results([OK, BAD])) == ("success", "")


def test_the_order_of_parallel_calls_does_not_hide_a_loop() -> None:
    loop = AgentLoop(spec())
    loop.start()
    repeat(loop, 1, call("a"), call("b"))
    repeat(loop, 1, call("b"), call("a"))
    assert asks(repeat(loop, 1, call("a"), call("b")))[2] == "loop"


def test_another_batch_breaks_the_row() -> None:
    loop = AgentLoop(spec())
    loop.start()
    repeat(loop, 2, call("a"))
    repeat(loop, 1, call("b"))
    assert asks(repeat(loop, 2, call("a")))[2] is None


def test_zero_turns_loop_detection_off() -> None:
    loop = AgentLoop(spec(loop_detection=0))
    loop.start()
    assert asks(repeat(loop, 10, call("a")))[2] is None


# Truncation


def test_a_cut_reply_gets_one_more_chance() -> None:
    loop = AgentLoop(spec())
    assert asks(drive(loop, CUT)) == (2, "auto", "shorter")
    assert ends(loop.on_reply(CUT)) == ("failed", "model.truncated")


def test_calls_of_a_cut_reply_never_run() -> None:
    reply = calls(call("write"), bad("write"), finish="length", text=True)
    assert asks(drive(AgentLoop(spec(story=True, accept_truncated=True)), reply)) == (2, "auto", "shorter")


def test_an_uncut_reply_gives_the_chance_back() -> None:
    assert asks(drive(AgentLoop(spec()), CUT, calls(call("a")), [OK], CUT)) == (4, "auto", "shorter")


def test_a_cut_keeps_the_tools_off() -> None:
    step = drive(AgentLoop(spec(max_steps=1)), calls(call("a")), [OK], CUT)
    assert asks(step) == (3, "none", "shorter")


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"story": True, "accept_truncated": True}, True),
        ({"story": True}, False),
        ({"accept_truncated": True}, False),
    ],
)
def test_cut_text_is_kept_for_a_story_that_accepts_it(fields: dict, kept: bool) -> None:
    step = drive(AgentLoop(spec(**fields)), ModelStep(finish="length", text=True))
    assert isinstance(step, Done) is kept


# The machine itself


def test_usage_of_every_reply_adds_up() -> None:
    loop = AgentLoop(spec())
    drive(loop, calls(bad()), EMPTY, PROSE)
    assert loop.usage == ONE + ONE + ONE


def test_feeding_out_of_turn_is_refused() -> None:
    loop = AgentLoop(spec())
    with pytest.raises(TurnwrightError, match="did not ask"):
        loop.on_reply(PROSE)
    loop.start()
    with pytest.raises(TurnwrightError, match="twice"):
        loop.start()
    with pytest.raises(TurnwrightError, match="did not ask"):
        loop.on_results([])
    loop.on_reply(calls(call("a")))
    with pytest.raises(TurnwrightError, match="did not ask"):
        loop.on_results([OK, OK])


SPECS = st.builds(
    spec,
    tool_choice=st.sampled_from(["auto", "required", "=end"]),
    finish_with=st.sampled_from([None, "end"]),
    story=st.booleans(),
    schema_ending=st.booleans(),
    max_steps=st.integers(1, 6),
    loop_detection=st.integers(0, 3),
    tool_use_corrections=st.integers(0, 2),
    output_repairs=st.integers(0, 2),
    loop_perturbations=st.integers(0, 2),
    fallback_answers=st.booleans(),
    final_answer=st.booleans(),
    accept_truncated=st.booleans(),
)
CALLS = st.lists(
    st.builds(
        call,
        st.sampled_from(["a", "b", "end"]),
        st.sampled_from(["1", "2"]),
        st.sampled_from([None, None, Code.TOOL_ARGUMENTS]),
    ),
    max_size=3,
)
REPLIES = st.builds(
    lambda finish, made, text, ending: ModelStep(
        finish=finish, calls=tuple(made), text=text, ending=ending, usage=ONE
    ),
    st.sampled_from(["stop", "length", "tool_calls"]),
    CALLS,
    st.booleans(),
    st.sampled_from([None, "valid", "invalid"]),
)


@given(SPECS, st.data())
def test_every_run_ends_in_bounded_steps_and_runs_no_refused_call(
    spec: AgentSpec, data: st.DataObject
) -> None:
    loop = AgentLoop(spec)
    step = loop.start()
    replies = 0
    forbidden = False
    while not isinstance(step, Done):
        if isinstance(step, Ask):
            replies += 1
            assert step.step == replies
            assert not forbidden or step.tool_choice == "none", "tools came back"
            forbidden = step.tool_choice == "none"
            step = loop.on_reply(data.draw(REPLIES))
        else:
            assert not forbidden
            assert step.calls
            assert all(planned.call.error is None for planned in step.calls)
            step = loop.on_results([data.draw(st.sampled_from([OK, BAD])) for _ in step.calls])
    bounded = spec.max_steps + EMPTY_REPLIES + spec.tool_use_corrections + spec.output_repairs + 2
    assert replies <= 2 * bounded
    assert step.usage.calls == replies
    assert (step.status == "success") is (step.reason == "")
