"""What is said of two schemas is true of every value, and the plain cases are said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel.manifest.disjoint import Shape, clash, listed, select
from kernel.pointer import MISSING
from kernel.pointer import select as selected
from kernel.schemas import problem

CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
TREE = {
    "type": "object",
    "properties": {"child": {"$ref": "#"}, "leaf": {"type": "string"}},
    "required": ["child"],
}


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"type": "string"}, {"type": "array"}, "string and array at /"),
        ({"type": ["string", "null"]}, {"type": "integer"}, "null or string and number at /"),
        ({"enum": ["a"]}, {"type": "integer"}, "string and number at /"),
        ({"enum": ["a", "b"]}, {"enum": ["c"]}, "no common value at /"),
        ({"const": "a"}, {"enum": ["c"]}, "no common value at /"),
        (CLOSED, {"required": ["b"], "type": "object"}, "b is required by one and not allowed by the other"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"type": "number"}}},
            "string and number at /a",
        ),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}},
            {"allOf": [{"type": "array"}]},
            "string and array at /",
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "number"}, "string and number at /"),
        ({"type": "number", "minimum": 3}, {"type": "number", "maximum": 2}, "minimum 3 and maximum 2 at /"),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            {"type": "array", "items": {"type": "object"}},
            "string and object at /0",
        ),
        ({"type": "string", "pattern": "^npc-"}, {"type": "string", "pattern": "^item-"}, "start with npc-"),
        ({"not": {}}, {}, "nothing is allowed at /"),
    ],
)
def test_what_cannot_meet_is_named_both_ways(one: dict[str, Any], other: dict[str, Any], said: str) -> None:
    assert said in clash(Shape.of(one), Shape.of(other))
    assert clash(Shape.of(other), Shape.of(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"type": "string"}),
        ({"type": "integer"}, {"type": "number"}),
        ({"enum": [1]}, {"enum": [1.0]}),
        (CLOSED, {"type": "object", "properties": {"b": {"type": "string"}}}),
        ({"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "null"}}),
        ({"type": "string", "pattern": "^ab*"}, {"type": "string", "pattern": "^ac"}),
        ({"type": "string", "pattern": "^npc|^item"}, {"type": "string", "pattern": "^item-"}),
        ({"type": "string", "pattern": "npc-"}, {"type": "string", "pattern": "^item-"}),
        (TREE, {**TREE, "properties": {"child": {"$ref": "#"}, "leaf": {"type": "number"}}}),
    ],
)
def test_nothing_is_said_that_is_not_sure(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert clash(Shape.of(one), Shape.of(other)) == ""


def test_a_list_is_no_object_whatever_it_holds() -> None:
    assert clash(listed(Shape.of({})), Shape.of({"type": "object"})) == "array and object at /"
    assert clash(listed(Shape.of(CLOSED)), Shape.of({"type": "array", "items": {"type": "null"}})) == ""


@pytest.mark.parametrize(
    ("schema", "tokens", "leads"),
    [
        (CLOSED, ["a"], True),
        (CLOSED, ["b"], False),
        (CLOSED, ["a", "c"], False),
        ({**CLOSED, "additionalProperties": {"type": "null"}}, ["b"], True),
        ({**CLOSED, "patternProperties": {"^b": {}}}, ["b"], True),
        ({"type": "array", "items": CLOSED}, ["0", "a"], True),
        ({"type": "array", "items": CLOSED}, ["01", "a"], False),
        ({"type": "array", "items": CLOSED}, ["a"], False),
        ({"type": "array", "prefixItems": [CLOSED], "items": False}, ["1"], False),
        ({"type": "array", "maxItems": 1}, ["1"], False),
        ({"type": "string"}, ["a"], False),
        ({}, ["a", "0", "b"], True),
        ({"anyOf": [CLOSED]}, ["b"], True),
        ({"$ref": "#/$defs/x", "$defs": {"x": CLOSED}}, ["b"], False),
    ],
)
def test_a_pointer_that_leads_to_nothing_is_known(
    schema: dict[str, Any], tokens: list[str], leads: bool
) -> None:
    assert (select(Shape.of(schema), tokens) is not None) == leads


LEAVES = st.sampled_from(
    [
        {},
        True,
        False,
        {"type": "string"},
        {"type": ["string", "null"]},
        {"type": "integer"},
        {"type": "number", "maximum": 1},
        {"minimum": 1},
        {"minimum": 2, "type": "number"},
        {"enum": ["a", "b"]},
        {"enum": ["b", 1]},
        {"const": "c"},
        {"pattern": "^a"},
        {"pattern": "^b", "type": "string"},
        {"minLength": 2},
        {"maxLength": 1, "type": "string"},
        {"type": "boolean"},
        {"not": {}},
    ]
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from("ab"), unique=True, max_size=2)
    objects = st.fixed_dictionaries(
        {
            "type": st.sampled_from(["object", ["object", "array"]]),
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        },
        optional={"required": names, "additionalProperties": inner, "minProperties": st.integers(0, 2)},
    )
    lists = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
        },
    )
    branches = st.lists(inner, min_size=1, max_size=2)
    choices = st.fixed_dictionaries({}, optional={"anyOf": branches, "oneOf": branches, "allOf": branches})
    return objects | lists | choices


SCHEMAS = st.recursive(LEAVES, _schemas, max_leaves=6).filter(lambda found: isinstance(found, dict))
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 1.0, 2, "", "a", "b", "ab", "c"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


@given(SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=10, max_size=30))
@example(
    {"minItems": 1, "type": "array", "items": {"const": "c"}},
    {"type": "array", "prefixItems": [{}], "items": False},
    [["c"]],
)
def test_no_value_satisfies_what_clashes(
    one: dict[str, Any], other: dict[str, Any], values: list[Any]
) -> None:
    if clash(Shape.of(one), Shape.of(other)):
        assert [
            value for value in values if problem(one, value) is None and problem(other, value) is None
        ] == []


@given(
    SCHEMAS,
    st.lists(st.sampled_from(["a", "b", "0", "1", "01"]), min_size=1, max_size=2),
    st.lists(VALUES, min_size=10, max_size=30),
)
def test_a_pointer_finds_nothing_where_it_leads_to_nothing(
    schema: dict[str, Any], tokens: list[str], values: list[Any]
) -> None:
    found = select(Shape.of(schema), tokens)
    for value in values:
        if (
            problem(schema, value) is None
            and (part := selected(value, "/" + "/".join(tokens))) is not MISSING
        ):
            assert found is not None
            whole = {"$ref": "#/$defs/here", "$defs": {"here": found.here}}
            assert problem(whole, part) is None
