from __future__ import annotations

from typing import Any

import pytest

from activities.plugins.results import HandlerResult, guard_verdict, handler_result
from kernel.errors import Code, TurnwrightError


@pytest.mark.parametrize(
    ("result", "output", "value", "exports"),
    [
        ({"value": {"a": 1}}, {"a": 1}, {"a": 1}, True),
        ({"value": {"pluginData": [], "events": 5}}, {"pluginData": [], "events": 5}, ..., True),
        ({"value": 5}, {"value": 5}, 5, True),
        ({"value": [1]}, {"value": [1]}, [1], True),
        ({"value": None}, {"value": None}, None, True),
        ({}, {}, None, False),
        ({"completion": "done", "effects": None}, {}, None, False),
    ],
)
def test_values_are_wrapped_and_their_keys_are_no_effects(
    result: dict[str, Any], output: Any, value: Any, exports: bool
) -> None:
    found = handler_result({"outcome": "success", **result})
    expected = output if value is ... else value
    assert (found.output, found.value, found.exports, found.proposals) == (output, expected, exports, ())


def test_channels_become_proposals_in_wire_form() -> None:
    effects = {
        "statePatches": [{"path": "/a/b", "ops": [{"op": "inc", "path": "/n", "by": 1}]}],
        "events": [{"topic": "dice.rolled"}, {"topic": "dice.rolled", "payload": 4}],
        "pluginData": [{"namespace": "_hidden.notes", "key": "k", "value": None}],
        "ui": [],
    }
    assert handler_result({"outcome": "success", "effects": effects}).proposals == (
        {"type": "plugin.data", "namespace": "_hidden.notes", "key": "k", "value": None},
        {"type": "event.emit", "topic": "dice.rolled", "payload": {}},
        {"type": "event.emit", "topic": "dice.rolled", "payload": 4},
        {"type": "state.patch", "path": "/a/b", "ops": [{"op": "inc", "path": "/n", "by": 1}]},
    )


@pytest.mark.parametrize("outcome", ["skipped", "failed", "blocked"])
def test_only_a_success_changes_anything(outcome: str) -> None:
    effects = {"pluginData": [{"namespace": "n", "key": "k", "value": 1}]}
    result = {"outcome": outcome, "value": {"a": 1}, "effects": effects, "skipReason": "not now"}
    assert handler_result(result) == HandlerResult(
        outcome=outcome,  # type: ignore[arg-type]
        output={"a": 1},
        value={"a": 1},
        reason="not now",
    )


@pytest.mark.parametrize(
    ("result", "code", "said"),
    [
        (None, Code.RUNTIME_OUTPUT, "the result is no object"),
        ([1], Code.RUNTIME_OUTPUT, "the result is no object"),
        ({"value": 1}, Code.RUNTIME_OUTPUT, "outcome is None"),
        ({"outcome": "done"}, Code.RUNTIME_OUTPUT, "outcome is 'done'"),
        ({"outcome": ["success"]}, Code.RUNTIME_OUTPUT, "outcome is ['success']"),
        ({"outcome": "success", "pluginData": []}, Code.RUNTIME_OUTPUT, "unknown key 'pluginData'"),
        ({"outcome": "success", "completion": "pending"}, Code.NOT_SUPPORTED, "completion: pending"),
        ({"outcome": "success", "effects": []}, Code.RUNTIME_OUTPUT, "effects is no object"),
        (
            {"outcome": "success", "effects": {"events": {}}},
            Code.RUNTIME_OUTPUT,
            "effects.events is no array",
        ),
        ({"outcome": "success", "effects": {"ui": {}}}, Code.RUNTIME_OUTPUT, "effects.ui is no array"),
        (
            {"outcome": "success", "effects": {"events": [1]}},
            Code.RUNTIME_OUTPUT,
            "effects.events[0] is no object",
        ),
        ({"outcome": "success", "effects": {"ui": [{}]}}, Code.NOT_SUPPORTED, "effects.ui"),
        (
            {"outcome": "success", "effects": {"interactions": [{}]}},
            Code.NOT_SUPPORTED,
            "effects.interactions",
        ),
        ({"outcome": "success", "effects": {"plugindata": []}}, Code.HANDLER_CHANNEL, "'plugindata'"),
        (
            {"outcome": "success", "effects": {"events": [{"type": "plugin.data"}]}},
            Code.RUNTIME_OUTPUT,
            "has a `type`",
        ),
    ],
)
def test_a_wrong_shape_is_refused_by_name(result: Any, code: Code, said: str) -> None:
    with pytest.raises(TurnwrightError) as caught:
        handler_result(result)
    assert caught.value.code == code
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("effects", "code", "where"),
    [
        (
            {"pluginData": [{"namespace": "n", "key": "k"}]},
            Code.COMMIT_PROPOSAL,
            "effects.pluginData[0].value",
        ),
        (
            {"pluginData": [{"namespace": "_jobs", "key": "k", "value": 1}]},
            Code.COMMIT_RESERVED,
            "effects.pluginData[0]",
        ),
        (
            {"pluginData": [{"namespace": "n", "key": "k", "value": "x" * 300_000}]},
            Code.COMMIT_VALUE_TOO_LARGE,
            "effects.pluginData[0].value",
        ),
        ({"events": [{"topic": "Dice"}]}, Code.COMMIT_PROPOSAL, "effects.events[0].topic"),
        ({"statePatches": [{"path": "a", "ops": []}]}, Code.COMMIT_PROPOSAL, "effects.statePatches[0].path"),
        (
            {"statePatches": [{"path": "/a", "ops": [{"op": "inc", "by": True}]}]},
            Code.COMMIT_PROPOSAL,
            "effects.statePatches[0].ops/0/by",
        ),
    ],
)
def test_a_refused_proposal_is_named_with_its_place(effects: Any, code: Code, where: str) -> None:
    with pytest.raises(TurnwrightError) as caught:
        handler_result({"outcome": "success", "effects": effects})
    assert (caught.value.code, caught.value.where) == (code, where)


def test_a_guards_answer_is_taken_apart() -> None:
    verdict = guard_verdict({"skip": True, "reason": "done"})
    assert (verdict.skip, verdict.output) == (True, {"reason": "done"})
    for answer in (None, {}, {"skip": "yes"}):
        with pytest.raises(TurnwrightError):
            guard_verdict(answer)
