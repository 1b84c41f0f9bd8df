"""JSON Schema files: what is refused before anything is validated with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.manifest import TURN_POLICY_INPUT, WELL_KNOWN, check_schema, read_schema
from kernel.manifest.schemas import DIALECT, MAX_BYTES
from kernel.manifest.well_known import restates


def reason(content: bytes) -> str:
    schema, problem = read_schema(content, file="s.json")
    assert (schema is None) != (problem is None)
    return "" if problem is None else problem.message


TEXTS: list[tuple[bytes, str]] = [
    (b"", "is not JSON"),
    (b"{", "is not JSON"),
    (b"\xff", "is not JSON"),
    (b"[]", "is not a JSON Schema object"),
    (b"true", "is not a JSON Schema object"),
    (b'{"type": "string", "type": "object"}', "duplicate key `type`"),
    (b'{"minimum": NaN}', "is not finite"),
    (b'{"minimum": 1e999}', "is not finite"),
    (b'{"minimum": 99999999999999999999}', "64 bits"),
    (b'{"title": "\\ud800"}', "lone surrogate"),
    (b'{"title": "\\u0000"}', "NUL"),
    (b"[" * 100_000, "is not JSON"),
    (b'{"not":' * 40 + b"{}" + b"}" * 40, "nested too deeply"),
    (json.dumps({"enum": list(range(6000))}).encode(), "too many values"),
    (b" " * (MAX_BYTES + 1), "larger than"),
]


@pytest.mark.parametrize(("content", "words"), TEXTS)
def test_text_is_refused(content: bytes, words: str) -> None:
    assert words in reason(content)


SCHEMAS: list[tuple[dict[str, Any], str]] = [
    ({"type": "objct"}, "not valid JSON Schema at `#/type`"),
    ({"properties": []}, "not valid JSON Schema"),
    ({"pattern": "("}, "the pattern `(` at `#` cannot be used"),
    ({"$schema": "http://json-schema.org/draft-07/schema#"}, "declares the dialect"),
    ({"$ref": "https://example.com/s.json"}, "names remote"),
    ({"$ref": "./other.json"}, "names another file"),
    ({"$ref": "#/$defs/nope"}, "names no schema"),
    ({"$ref": "#nope"}, "names no schema"),
    ({"$ref": "#"}, "turns in a circle"),
    ({"anyOf": [{"$ref": "#"}]}, "turns in a circle"),
    ({"if": {"$ref": "#"}}, "turns in a circle"),
    ({"dependentSchemas": {"a": {"$ref": "#"}}}, "turns in a circle"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "circle"),
    ({"$dynamicRef": "#a"}, "$dynamicRef"),
    ({"properties": {"a": {"$id": "https://x.io/a"}}}, "$id inside"),
]


@pytest.mark.parametrize(("schema", "words"), SCHEMAS)
def test_schema_is_refused(schema: dict[str, Any], words: str) -> None:
    assert words in reason(json.dumps(schema).encode())
    assert words in check_schema(schema)


ACCEPTED: list[dict[str, Any]] = [
    {},
    {"$schema": DIALECT, "$id": "https://x.io/a", "type": "object"},
    {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}},
    {"properties": {"a": {"$ref": "#leaf"}}, "$defs": {"a": {"$anchor": "leaf"}}},
    {"properties": {"a": {"$ref": "#/$defs/x~1y%20z"}}, "$defs": {"x/y z": {}}},
    {"properties": {"a": {"$ref": "#/properties/b"}, "b": True}},
    {"prefixItems": [{"type": "string"}, {"$ref": "#/prefixItems/0"}]},
    {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}},
    {"definitions": {"a": {}}, "properties": {"b": {"$ref": "#/definitions/a"}}},
    {"const": {"$ref": "https://not.a/reference"}},
]


@pytest.mark.parametrize("schema", ACCEPTED, ids=range(len(ACCEPTED)))
def test_schema_is_accepted(schema: dict[str, Any]) -> None:
    assert reason(json.dumps(schema).encode()) == ""


def test_check_schema_refuses_what_is_no_object() -> None:
    assert "is not a JSON Schema object" in check_schema([])


def test_syntax_error_names_its_line() -> None:
    _, problem = read_schema(b'{\n"a": 1,\n}', file="s.json")
    assert problem is not None
    assert problem.line == 3


def test_largest_schema_is_judged_at_all() -> None:
    """Within the suite's time-out; nothing of it doubles with every level."""
    inner: dict[str, Any] = {}
    for _ in range(30):
        inner = {"anyOf": [inner, {"type": "string"}]}
    reason(json.dumps({"properties": {f"p{n}": {"type": "string"} for n in range(1200)}}).encode())
    reason(json.dumps(inner).encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    reason(content)


KEYWORDS = st.sampled_from(
    [
        "$ref",
        "$defs",
        "properties",
        "items",
        "anyOf",
        "not",
        "type",
        "enum",
        "$anchor",
        "$id",
        "a",
        "dependentSchemas",
    ]
)
VALUES = st.recursive(
    st.sampled_from(["#", "#/$defs/a", "string", "object", True, 1, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYWORDS, VALUES, max_size=4))
def test_any_schema_is_judged(schema: dict[str, Any]) -> None:
    reason(json.dumps(schema).encode())


@pytest.mark.parametrize("contract", sorted(WELL_KNOWN))
def test_shipped_schema_is_sound(contract: str) -> None:
    assert check_schema(WELL_KNOWN[contract]) == ""
    assert restates(dict(WELL_KNOWN[contract]), contract)


def test_policy_input_is_sound() -> None:
    assert check_schema(TURN_POLICY_INPUT) == ""


def test_restating_may_add_notes_and_change_order() -> None:
    schema = json.loads(json.dumps(WELL_KNOWN["scene-cast@1"]))
    schema["$schema"], schema["title"], schema["properties"]["cast"]["description"] = DIALECT, "Cast", "Who"
    schema["properties"]["cast"]["items"]["required"].reverse()
    assert restates(schema, "scene-cast@1")


def test_changing_a_shipped_schema_is_no_restating() -> None:
    schema = json.loads(json.dumps(WELL_KNOWN["scene-cast@1"]))
    del schema["properties"]["cast"]["items"]["properties"]["seat"]
    assert not restates(schema, "scene-cast@1")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"pattern": "("}, "missing )"),
        ({"pattern": "(?=a)b"}, "invalid perl operator"),
        ({"properties": {"a": {"patternProperties": {r"(a)\1": {}}}}}, "invalid escape sequence"),
        ({"pattern": "a" * 3_000}, "is longer than"),
        ({"patternProperties": {"a": {}}, "unevaluatedProperties": False}, "goes not with patternProperties"),
    ],
)
def test_a_pattern_without_linear_time_is_refused_with_its_place(schema: dict[str, Any], said: str) -> None:
    assert said in check_schema(schema)
