"""Inputs and outputs against schemas, as far as one package tells. Spec: plugin-model §7, §9."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kernel.manifest.packages import AUTO, HANDLER, errors, files, load

TEXTS = {
    "type": "object",
    "properties": {"texts": {"type": "array", "items": {"type": "string"}}},
    "required": ["texts"],
    "additionalProperties": False,
}
NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
NARRATIVE = {"contract": "narrative-engine@2"}


def content(binding: dict[str, Any], schema: Any = TEXTS, *, output: Any = None) -> dict[str, bytes]:
    """A package whose `reader` has one input, beside a `writer` whose output has a schema."""
    writer = {"schedule": AUTO, "function": {}, "io": {"output": output or {"schema": "../../texts.json"}}}
    reader = {"schedule": AUTO, "io": {"inputs": {"given": binding}}}
    return files(
        {"contracts": {"texts@1": {"schema": "./texts.json"}}},
        {"reader": reader, "writer": writer},
        **{
            "texts.json": json.dumps(schema).encode(),
            "numbers.json": json.dumps(NUMBERS).encode(),
            "runtimes/writer/handler.py": HANDLER,
        },
    )


WRITER = {"runtime": "pkg/writer"}
ACCEPTS = {"accepts": "../../numbers.json"}


@pytest.mark.parametrize(
    ("binding", "field", "said"),
    [
        ({"from": WRITER, "select": "/text"}, "select", "/text leads to nothing in any value of pkg/writer"),
        ({"from": WRITER, "select": "/texts/01"}, "select", "leads to nothing"),
        ({"from": WRITER, **ACCEPTS}, "accepts", "no value of pkg/writer is accepted: object and array at /"),
        ({"from": WRITER, "select": "/texts/0", **ACCEPTS}, "accepts", "string and array at /"),
        ({"from": {"contract": "texts@1"}, "select": "/no"}, "select", "in any value of texts@1"),
        ({"from": NARRATIVE, "select": "/text"}, "select", "in any value of narrative-engine@2"),
        ({"from": NARRATIVE, "accepts": "contract:scene-cast@1"}, "accepts", "is required by one and not"),
        (
            {"from": {**NARRATIVE, "cardinality": "all"}, "accepts": "contract:narrative-engine@2"},
            "accepts",
            "array and object at /",
        ),
    ],
)
def test_an_input_without_any_possible_value_is_refused(binding: Any, field: str, said: str) -> None:
    (problem,) = load(content(binding)).errors
    assert (problem.code, problem.path) == ("package.schema", f"io.inputs.given.{field}")
    assert problem.file == "runtimes/reader/RUNTIME.md"
    assert said in problem.message


@pytest.mark.parametrize(
    "binding",
    [
        {"from": WRITER, "select": "/texts"},
        {"from": WRITER, "select": "/texts/0"},
        {"from": NARRATIVE, "select": "/segments"},
        {"from": NARRATIVE, "select": "/segments/0/speaker"},
        {"from": {"contract": "unknown@1"}, "select": "/anything", **ACCEPTS},
    ],
)
def test_an_input_that_may_have_a_value_is_fine(binding: Any) -> None:
    assert errors(content(binding)) == []


def test_an_output_has_to_be_able_to_satisfy_its_contract() -> None:
    output = {"contract": "scene-cast@1", "schema": "../../texts.json"}
    (problem,) = load(content({"from": WRITER}, output=output)).errors
    assert (problem.code, problem.path) == ("package.schema", "io.output.schema")
    assert "no output satisfies this and scene-cast@1: cast is required" in problem.message


def test_schemas_of_a_tree_are_compared_without_end() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["child"]}
    assert errors(content({"from": WRITER, "accepts": "../../texts.json"}, tree)) == []
