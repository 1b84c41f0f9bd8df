"""Judging values by a package's schemas, and finding a JSON ending in a reply."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.agent.endings import json_ending
from kernel.schemas import problem

SCHEMA = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}


def test_a_value_that_fits_has_no_problem() -> None:
    assert problem(SCHEMA, {"n": [1]}) is None


def test_a_problem_names_its_place() -> None:
    assert problem(SCHEMA, {"n": [1, "two"]}) == "at n/1: 'two' is not of type 'integer'"


def test_a_schema_that_cannot_be_applied_is_a_problem_and_no_exception() -> None:
    assert "cannot be applied" in (problem({"$ref": "https://example.com/s.json"}, 1) or "")


def test_many_schemas_are_judged_by_their_own_rules() -> None:
    for number in range(600):
        assert problem({"const": number}, number) is None
        assert problem({"const": number}, number + 1) is not None


@pytest.mark.parametrize(
    "text", ['{"a": 1}', ' {"a": 1}\n', '```json\n{"a": 1}\n```', '```\n{"a": 1}\n```\n']
)
def test_an_ending_is_found(text: str) -> None:
    assert json_ending(text) == {"a": 1}


@pytest.mark.parametrize("text", ["", "The user is not asking.", '{"a": NaN}', 'Sure: {"a": 1}', '{"a": 1,}'])
def test_prose_is_no_ending(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        json_ending(text)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 9, "a" * 50_000 + "b"),
        ({"patternProperties": {"^(x*)*$": {"type": "string"}}}, {"xx": "s", "y": 1}, {"x" * 5_000: 1}),
        (
            {"patternProperties": {"^(x+)+$": {}}, "additionalProperties": False},
            {"x" * 5_000: 1},
            {"x" * 5_000 + "y": 1},
        ),
        (
            {"additionalProperties": {"type": "integer"}, "properties": {"a": {}}},
            {"a": "s", "b": 1},
            {"b": "s"},
        ),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"a": 1}, {"b": 1}),
    ],
)
def test_patterns_take_linear_time(schema: dict[str, Any], good: Any, bad: Any) -> None:
    assert problem(schema, good) is None
    assert problem(schema, bad) is not None
