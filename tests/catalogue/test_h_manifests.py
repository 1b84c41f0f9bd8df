"""Catalogue H: plugin manifests and schemas."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from activities.models import Endpoint, OpenAIChat, close_shared_transport
from kernel.agent.messages import Message, ModelRequest, ToolSpec
from kernel.agent.strict import strict_fault
from kernel.manifest import Loaded, check_schema, load_package, parse_yaml, read_schema
from tests.support.model_server import ModelServer, Reply


def load(yaml: str, **files: bytes) -> Loaded:
    return load_package({"PLUGIN.md": f"---\n{yaml}\n---\nPrompt.\n".encode(), **files}, name="pkg")


# H1: duplicate keys, where the last one silently wins


def test_h1_duplicate_key_is_refused_with_both_lines() -> None:
    (problem,) = load("runtime:\n  schedule: { stage: audit }\ntags: []\nruntime:\n  io: {}").errors
    assert problem.code == "yaml.duplicate-key"
    assert "line 2 and line 5" in problem.message
    assert (problem.line, problem.path) == (5, "runtime")


@pytest.mark.parametrize(
    "yaml",
    ['tags: []\n"tags": []', "contributes: { ui: {}, ui: {} }", "a: &x k\n? *x\n: 1\nk: 2\nb: {k: 1, k: 1}"],
)
def test_h1_spelling_of_a_key_does_not_hide_it(yaml: str) -> None:
    assert "yaml.duplicate-key" in {problem.code for problem in load(yaml).errors}


def test_h1_same_key_in_two_maps_is_no_duplicate() -> None:
    document = parse_yaml(b"a: { k: 1 }\nb: { k: 2 }\n", file="f")
    assert document.problems == ()


def test_h1_duplicate_key_of_a_schema_file_is_refused() -> None:
    _, problem = read_schema(b'{"type": "object", "type": "string"}', file="s.json")
    assert problem is not None
    assert "duplicate key `type`" in problem.message


def test_h1_two_equal_names_in_a_list_are_refused() -> None:
    entry = {"server/__init__.py": b"def register(host): ...\n"}
    (problem,) = load("contributes:\n  tools:\n    - mark\n    - mark", **entry).errors
    assert (problem.code, problem.line) == ("package.combination", 5)


# H2: an alias bomb is small when parsed and explodes when serialised


def bomb(levels: int, width: int = 9) -> str:
    rows = ["a0: &a0 [" + ", ".join(["lol"] * width) + "]"]
    rows += [
        f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * width) + "]" for level in range(1, levels)
    ]
    return "\n".join(rows)


def test_h2_alias_bomb_is_refused() -> None:
    document = parse_yaml(bomb(9).encode(), file="f")
    assert document.data is None
    assert [problem.code for problem in document.problems] == ["yaml.alias"]


def test_h2_bomb_of_maps_is_refused() -> None:
    rows = ["a0: &a0 { x: 1, y: 2 }"]
    rows += [f"a{n}: &a{n} {{ " + ", ".join(f"k{m}: *a{n - 1}" for m in range(9)) + " }" for n in range(1, 9)]
    assert parse_yaml("\n".join(rows).encode(), file="f").problems[0].code == "yaml.alias"


def test_h2_accepted_document_stays_small_when_serialised() -> None:
    content = bomb(3).encode()
    document = parse_yaml(content, file="f")
    assert document.problems == ()
    assert len(json.dumps(document.data)) < 100 * len(content)


def test_h2_small_use_of_an_alias_is_accepted() -> None:
    yaml = "runtime:\n  schedule: { stage: audit }\n  effects:\n    reads: &own ['ui:*']\n    writes: *own"
    found = load(yaml)
    assert found.package is not None
    effects = found.package.runtimes[0].manifest.effects
    assert effects is not None
    assert effects.reads == effects.writes == ("ui:*",)


def test_h2_bomb_in_a_package_is_one_problem() -> None:
    (problem,) = load(bomb(9)).errors
    assert problem.file == "PLUGIN.md"


# H3: words that YAML 1.1 reads as booleans


@pytest.mark.parametrize("word", ["NO", "no", "yes", "on", "off", "y", "n", "Off"])
def test_h3_word_stays_a_string(word: str) -> None:
    found = load(f"displayName: {word}")
    assert found.package is not None
    assert found.package.manifest.display_name == word


def test_h3_word_as_a_key_stays_a_string() -> None:
    assert parse_yaml(b"on: push\nNO: 1\n", file="f").data == {"on": "push", "NO": 1}


@pytest.mark.parametrize("value", ['"yes"', "yes", "on", '"true"', "1"])
def test_h3_boolean_field_refuses_a_word_clearly(value: str) -> None:
    (problem,) = load(f"runtime:\n  schedule:\n    stage: audit\n    detached: {{ settle: {value} }}").errors
    assert (problem.path, problem.line) == ("runtime.schedule.detached.settle", 5)
    assert problem.accepted == "true or false"


def test_h3_boolean_in_a_string_field_is_a_clear_error() -> None:
    (problem,) = load("displayName: true").errors
    assert problem.accepted == "a string; put it in quotes"


# H5: numbers that differ by YAML version: the profile is YAML 1.2 core


@pytest.mark.parametrize(
    ("written", "value"),
    [("0666", 666), ("0o666", 438), ("0x1f", 31), (".8", 0.8), ("1_000", "1_000"), ("1:30", "1:30")],
)
def test_h5_number_is_read_as_yaml_1_2(written: str, value: Any) -> None:
    data = parse_yaml(f"v: {written}".encode(), file="f").data
    assert data == {"v": value}
    assert type(data["v"]) is type(value)


def test_h5_date_stays_a_string() -> None:
    assert parse_yaml(b"v: 2024-01-01", file="f").data == {"v": "2024-01-01"}


def test_h5_fraction_in_an_integer_field_is_refused() -> None:
    (problem,) = load("runtime:\n  schedule: { stage: audit, every: .8 }").errors
    assert problem.path == "runtime.schedule.every"


# H8: recursive references

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["children"],
        }
    },
}


def test_h8_tree_schema_is_accepted_and_validates() -> None:
    schema, problem = read_schema(json.dumps(TREE).encode(), file="s.json")
    assert (schema, problem) == (TREE, None)
    validator = Draft202012Validator(TREE)
    assert validator.is_valid({"children": [{"children": []}]})
    assert not validator.is_valid({"children": [{"children": 3}]})


def test_h8_reference_to_the_root_is_accepted() -> None:
    assert check_schema({"properties": {"next": {"$ref": "#"}}}) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"oneOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_h8_recursion_that_never_descends_is_refused(schema: dict[str, Any]) -> None:
    assert "turns in a circle" in check_schema(schema)


def test_h8_nesting_of_a_schema_is_capped() -> None:
    content = b'{"items":' * 40 + b"{}" + b"}" * 40
    _, problem = read_schema(content, file="s.json")
    assert problem is not None
    assert "nested too deeply" in problem.message


# H9: a reference to something that is no schema accepts everything


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/properties/a/enum/0", "properties": {"a": {"enum": ["x"]}}},
        {"$ref": "#/properties", "properties": {"a": {}}},
        {"$ref": "#/required", "required": ["a"]},
        {"$ref": "#/title", "title": "x"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#/const", "const": {"type": "string"}},
        {"properties": {"a": {"$ref": "#/definitions/missing"}}},
    ],
)
def test_h9_reference_has_to_name_a_schema(schema: dict[str, Any]) -> None:
    assert "names no schema" in check_schema(schema)


def test_h9_property_named_ref_is_no_reference() -> None:
    assert check_schema({"properties": {"$ref": {"type": "string"}}}) == ""


def test_h9_reference_that_is_no_string_is_refused() -> None:
    assert "not valid JSON Schema" in check_schema({"properties": {"a": {"$ref": 3}}})


def test_h9_schema_is_judged_before_its_package_loads() -> None:
    yaml = "runtime:\n  schedule: { stage: audit }\n  io: { output: { schema: ./s.json } }"
    (problem,) = load(yaml, **{"s.json": b'{"$ref": "#/title", "title": "x"}'}).errors
    assert (problem.code, problem.file) == ("package.schema", "s.json")


# H10: additionalProperties beside $ref, in 2020-12


def test_h10_additional_properties_sees_only_its_neighbours() -> None:
    schema = {
        "$ref": "#/$defs/named",
        "properties": {"age": {"type": "integer"}},
        "additionalProperties": False,
        "$defs": {"named": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    assert check_schema(schema) == ""
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"age": 3})
    assert not validator.is_valid({"name": "x"})


def test_h10_unevaluated_properties_sees_through_the_reference() -> None:
    schema = {
        "$ref": "#/$defs/named",
        "unevaluatedProperties": False,
        "$defs": {"named": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    assert check_schema(schema) == ""
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"name": "x"})
    assert not validator.is_valid({"age": 3})


def test_h10_another_dialect_is_refused_by_name() -> None:
    reason = check_schema({"$schema": "http://json-schema.org/draft-07/schema#"})
    assert "declares the dialect" in reason


# H7: shapes for which a provider refuses the whole call in strict mode

TEXT = {"type": "string"}
NOTE = {"type": "object", "properties": {"text": TEXT}, "required": ["text"], "additionalProperties": False}
DEFINED = {"$defs": {"note": NOTE}}


def holding(inner: Any, **more: Any) -> dict[str, Any]:
    """A schema that strict mode takes, but for one property."""
    return {**NOTE, "properties": {"text": inner}, **more}


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (NOTE, ""),
        (holding({"anyOf": [NOTE, {"type": "null"}]}), ""),
        (holding({"$ref": "#/$defs/note"}, **DEFINED), ""),
        (holding({"type": "array", "items": {"$ref": "#"}}), ""),
        (holding({"oneOf": [NOTE, {"type": "null"}]}), "oneOf at #/properties/text"),
        ({**NOTE, "anyOf": [NOTE]}, "anyOf at #"),
        ({"$ref": "#/$defs/note", **DEFINED}, "$ref at #"),
        (holding({"$ref": "#/definitions/note"}, definitions={"note": NOTE}), "definitions at #"),
        (
            holding({"$ref": "#/$defs/note", "description": "x"}, **DEFINED),
            "$ref beside other",
        ),
        (holding({"$ref": "#note"}, **DEFINED), "$ref #note at #/properties/text"),
        ({**NOTE, "required": []}, "the optional property text at #"),
        ({**NOTE, "additionalProperties": True}, "no additionalProperties: false at #"),
        (holding({"type": "object"}), "no additionalProperties: false at #/properties/text"),
        (holding(True), "the schema true at #/properties/text"),
        (holding({"type": "string", "default": "x"}), "default at #/properties/text"),
        ({"type": "array", "items": NOTE}, "no object at #"),
    ],
)
async def test_h7_strict_mode_is_asked_for_only_where_it_is_safe(
    schema: dict[str, Any], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """On the wire, for a tool and an output; the log names the tool that goes without."""
    assert strict_fault(schema).startswith(fault)
    assert bool(strict_fault(schema)) == bool(fault)
    name = f"mark-{sha256(json.dumps(schema).encode()).hexdigest()[:20]}"
    tool = ToolSpec(name=name, description="Marks.", parameters=schema)
    async with ModelServer([Reply(text="{}", times=0)]) as server:
        for strict in (True, False):
            request = ModelRequest(
                model="m", messages=(Message(role="user", text="Go."),), tools=(tool,), output_schema=schema
            )
            endpoint = Endpoint(server.url, strict=strict)
            await OpenAIChat().stream(request, endpoint, idempotency_key="k", on_event=lambda event: None)
        sent = [call.body for call in server.calls]
    await close_shared_transport()
    safe = not fault
    assert [("strict" in one["tools"][0]["function"]) for one in sent] == [safe, False]
    assert [("strict" in one["response_format"]["json_schema"]) for one in sent] == [safe, False]
    said = [record.getMessage() for record in caplog.records if name in record.getMessage()]
    assert len(said) == (0 if safe else 1)
    assert all(fault in line for line in said)
