"""Content keys against recorded ones. Spec: engine §4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernel.errors import Code, TurnwrightError
from kernel.identity.keys import (
    MAX_SCHEMA_PARTS,
    arguments_digest,
    content_key,
    journal_key,
    journal_ordinal,
    schema_hash,
    toolset_hash,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "golden-identity.json").read_text())
KINDS = [pytest.param(case["input"], case["key"], id=case["name"]) for case in GOLDEN["perKind"]]
AGENT = GOLDEN["perKind"][1]["input"]


@pytest.mark.parametrize(("identity", "key"), KINDS)
def test_recorded_keys_come_out_again(identity: dict, key: str) -> None:
    assert content_key(identity) == key


def test_the_worked_example_and_the_empty_hashes() -> None:
    assert content_key(GOLDEN["perKind"][0]["input"]) == GOLDEN["workedExampleKey"]
    assert schema_hash(None) == schema_hash(True) == GOLDEN["emptySchemaHash"]
    assert toolset_hash([]) == GOLDEN["emptyToolsetHash"]


@pytest.mark.parametrize("effort", [None, "high"])
def test_version_one_does_not_count_effort(effort: str | None) -> None:
    spec = {**AGENT["modelSpec"], **({"effort": effort} if effort else {})}
    recorded = GOLDEN["v1"]["agentEffortInsensitive"]["withEffort" if effort else "withoutEffort"]
    assert content_key({**AGENT, "modelSpec": spec}, version=1) == recorded
    assert (content_key({**AGENT, "modelSpec": spec}) == recorded) is (effort is None)


def test_a_ladder_counts_as_it_is() -> None:
    ladder = {**AGENT, "modelSpec": {"ladder": [{"model": "a"}]}}
    tagged = {**AGENT, "modelSpec": {"kind": "ladder", "ladder": [{"model": "a"}]}}
    assert len({content_key(AGENT), content_key(ladder), content_key(tagged)}) == 3


def test_fields_of_no_kind_do_not_count() -> None:
    step = GOLDEN["perKind"][3]
    assert content_key({**step["input"], "label": "telemetry"}) == step["key"]


@pytest.mark.parametrize("kind", [*GOLDEN["v1"]["incomparableKinds"], None, "resolution"])
def test_other_kinds_have_no_content_key(kind: str | None) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        content_key({"kind": kind})
    assert refusal.value.code == Code.WIRE_MALFORMED


# Schemas


SAME = [
    ({"type": "string"}, {"type": "string", "title": "T", "description": "D", "default": 1, "examples": []}),
    ({"type": "string"}, {"$ref": "#/$defs/s", "$defs": {"s": {"type": "string", "$comment": "x"}}}),
    ({"type": "string"}, {"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"type": "string"}}}),
    (
        {"allOf": [{"type": "string"}, {"pattern": "x"}], "minLength": 1},
        {
            "$ref": "#/$defs/s",
            "minLength": 1,
            "allOf": [{"pattern": "x"}],
            "$defs": {"s": {"type": "string"}},
        },
    ),
    ({"items": [{"type": "null"}, True]}, {"items": [{"type": "null", "readOnly": True}, True]}),
    (
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"required": ["a"], "properties": {"a": {"type": "string", "deprecated": True}}},
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_annotations_and_references_do_not_count(one: dict, other: dict) -> None:
    assert schema_hash(one) == schema_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "string"}, {"type": "string", "format": "date"}),
        ({"properties": {"title": {}}}, {"properties": {}}),
        ({"const": {"title": 1}}, {"const": {}}),
        ({"enum": [{"description": 1}]}, {"enum": [{}]}),
        ({"required": ["a", "b"]}, {"required": ["b", "a"]}),
    ],
)
def test_what_changes_the_meaning_counts(one: dict, other: dict) -> None:
    assert schema_hash(one) != schema_hash(other)


def _deep() -> dict:
    schema: dict = {}
    for _ in range(300):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "#"}, "back to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "back to itself"),
        ({"$ref": "https://elsewhere/schema.json"}, "not local"),
        ({"$ref": 3}, "not local"),
        ({"$ref": "#/$defs/none"}, "leads to nothing"),
        ({"$ref": "#anchor"}, "leads to nothing"),
        ({"$dynamicRef": "#node"}, "not supported"),
        ({"items": {"$recursiveRef": "#"}}, "not supported"),
        (_deep(), "deeper than"),
        (
            {
                "$ref": "#/$defs/a0",
                "$defs": {f"a{n}": {"items": [{"$ref": f"#/$defs/a{n + 1}"}] * 10} for n in range(9)}
                | {"a9": {}},
            },
            f"more than {MAX_SCHEMA_PARTS}",
        ),
    ],
)
def test_references_that_cannot_be_put_in_place_are_refused(schema: dict, why: str) -> None:
    with pytest.raises(TurnwrightError, match=why) as refusal:
        schema_hash(schema)
    assert refusal.value.code == Code.PACKAGE_SCHEMA


# Tools, calls


def tool(name: str, **fields: object) -> dict:
    return {"name": name, "description": "d", "parameters": {"type": "object"}, **fields}


def test_a_toolset_is_what_the_model_sees_in_any_order() -> None:
    one, other = tool("a"), tool("b", version="2")
    assert toolset_hash([one, other]) == toolset_hash([{**other, "execute": "x", "risk": "read"}, one])
    assert toolset_hash([one]) == toolset_hash([tool("a", version=None)])
    assert toolset_hash([one]) != toolset_hash([tool("a", version="1")])
    assert toolset_hash([one]) != toolset_hash([tool("a", description="e")])


def test_equal_calls_have_equal_digests_whatever_the_spelling() -> None:
    digest = arguments_digest("roll", {"sides": 6, "times": 2})
    assert digest == arguments_digest("roll", {"times": 2.0, "sides": 6})
    assert len(digest) == 20
    assert int(digest, 16) >= 0
    others = [("roll", {"sides": 6}), ("rol", {"sides": 6, "times": 2}), ("roll", "{}"), ("roll", None)]
    assert len({digest, *(arguments_digest(name, args) for name, args in others)}) == 5


def test_journal_keys_tell_kinds_and_arguments_apart() -> None:
    keys = {journal_key("model", {"p": 1}), journal_key("tool", {"p": 1}), journal_key("model", {"p": "1"})}
    assert len(keys) == 3
    assert all(len(key) == 64 for key in keys)
    assert journal_key("http", {"a": 1, "b": 2}) == journal_key("http", {"b": 2, "a": 1})


def test_journal_ordinals_tell_keys_and_repeats_apart_and_fit_into_json() -> None:
    keys = [journal_key("model", {"p": n}) for n in range(20)]
    ordinals = [journal_ordinal(key, repeat) for key in keys for repeat in range(200)]
    assert len(set(ordinals)) == len(ordinals)
    assert 2**52 < max(ordinals) < 2**53
    assert ordinals[0] == journal_ordinal(journal_key("model", {"p": 0}), 0)
