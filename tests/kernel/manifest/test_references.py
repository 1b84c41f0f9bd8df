"""Reading a package: what its runtimes publish, name and need of each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel.manifest import WELL_KNOWN, Diagnostic

from .packages import AUTO, REGISTER, errors, files, load, package

SCHEMA = b'{"type": "object"}'
TOOLS = {"contributes": {"tools": ["mark", "wipe"]}}
ENTRY = {"server/__init__.py": REGISTER}


def agent(**fields: Any) -> dict[str, Any]:
    return {"schedule": AUTO, **fields}


def only(content: dict[str, bytes], **options: Any) -> Diagnostic:
    (problem,) = load(content, **options).errors
    return problem


# Contracts and schemas


def publishes(contract: str, **fields: Any) -> dict[str, Any]:
    return agent(io={"output": {"contract": contract}, **fields})


def test_two_runtimes_cannot_output_one_contract() -> None:
    problem = only(files({}, {"a": publishes("facts@1"), "b": publishes("facts@1")}))
    assert problem.code == "package.ambiguous-output-contract"
    assert "ambiguous output contract facts@1" in problem.message


def test_package_provides_what_it_outputs() -> None:
    found = package(files({"provides": ["z@1"]}, {"a": publishes("facts@1"), "b": agent()}))
    assert found.provides == ("facts@1", "z@1")


def test_accepting_namespace_gives_the_public_schema() -> None:
    data = {"contributes": {"data": {"facts": {"schema": "./s.json", "accepts": ["facts@1"]}}}}
    found = package(files(data, {"a": publishes("facts@1")}, **{"s.json": SCHEMA}))
    assert found.contract_schemas == {"facts@1": {"type": "object"}}
    assert found.data_schemas == {"facts": {"type": "object"}}
    assert found.runtimes[0].contract_schema == {"type": "object"}


def test_contract_without_a_schema_is_a_note() -> None:
    found = load(files({}, {"a": publishes("facts@1")}))
    assert found.package is not None
    assert any("any JSON is accepted" in problem.message for problem in found.advice)


def test_shipped_contract_has_its_schema() -> None:
    found = package(files({}, {"a": publishes("scene-cast@1")}))
    assert found.runtimes[0].contract_schema == WELL_KNOWN["scene-cast@1"]


@pytest.mark.parametrize(
    ("schema", "refused"),
    [(json.dumps(WELL_KNOWN["scene-cast@1"]).encode(), False), (SCHEMA, True)],
)
def test_shipped_contract_may_be_restated_not_changed(schema: bytes, refused: bool) -> None:
    content = files({"contracts": {"scene-cast@1": {"schema": "./s.json"}}}, **{"s.json": schema})
    expected = [("package.contract", "contracts.scene-cast@1.schema")] if refused else []
    assert errors(content) == expected


def test_two_schemas_of_one_contract_must_agree() -> None:
    data = {"facts": {"schema": "./s.json", "accepts": ["facts@1"]}}
    plugin = {"contributes": {"data": data}, "contracts": {"facts@1": {"schema": "./t.json"}}}
    assert errors(files(plugin, **{"s.json": SCHEMA, "t.json": b"{}"})) == [
        ("package.contract", "contracts.facts@1.schema")
    ]
    assert errors(files(plugin, **{"s.json": SCHEMA, "t.json": SCHEMA})) == []


def test_schema_problem_is_reported_once() -> None:
    followed = agent(io={"payloadSchema": "../../schemas/s.json"})
    content = files({}, {"a": followed, "b": followed}, **{"schemas/s.json": b"{"})
    assert only(content).file == "schemas/s.json"


def test_input_schema_comes_from_a_path_or_a_contract() -> None:
    inputs = {
        "local": {"from": {"contract": "x@1"}, "accepts": "./s.json"},
        "shipped": {"from": {"contract": "x@1"}, "accepts": "contract:scene-cast@1"},
        "foreign": {"from": {"contract": "x@1"}, "accepts": "contract:other@1"},
    }
    found = package(files({"runtime": agent(io={"inputs": inputs})}, **{"s.json": SCHEMA}))
    assert found.runtimes[0].input_schemas == {
        "local": {"type": "object"},
        "shipped": WELL_KNOWN["scene-cast@1"],
    }


def test_events_and_datasets_have_their_schemas() -> None:
    contributes = {
        "events": [{"topic": "fact.found", "schema": "./s.json"}, {"topic": "fact.lost"}],
        "datasets": {"coins": {"namespace": "purse", "schema": "./t.json"}},
    }
    found = package(files({"contributes": contributes}, **{"s.json": SCHEMA, "t.json": b"{}"}))
    assert found.event_schemas == {"fact.found": {"type": "object"}}
    assert sorted(found.schemas) == ["s.json", "t.json"]


def test_authoring_example_must_exist() -> None:
    data = {"contributes": {"data": {"d": {"authoring": {"example": "./e.json"}}}}}
    assert errors(files(data)) == [("package.reference", "contributes.data.d.authoring.example")]


# References between runtimes


def needs(*names: str, stage: str = "post-turn", field: str = "needs", **fields: Any) -> dict[str, Any]:
    return {"schedule": {"stage": stage, field: list(names)}, **fields}


@pytest.mark.parametrize("name", ["pkg/nope", "other/a", "pkg"])
def test_unknown_runtime_is_refused(name: str) -> None:
    assert errors(files({}, {"a": needs(name), "b": agent()})) == [("package.reference", "schedule.needs[0]")]


def test_runtime_that_does_not_parse_is_no_unknown_runtime() -> None:
    assert errors(files({}, {"a": needs("pkg/b"), "b": {"schedule": {}}})) == [
        ("package.combination", "schedule.stage")
    ]


CYCLES: list[tuple[dict[str, Any], str]] = [
    ({"a": needs("pkg/a")}, "pkg/a -> pkg/a"),
    ({"a": needs("pkg/b"), "b": needs("pkg/a", field="after")}, "pkg/a -> pkg/b -> pkg/a"),
    ({"a": needs("pkg/b"), "b": needs("pkg/c"), "c": needs("pkg/a")}, "pkg/a -> pkg/b -> pkg/c -> pkg/a"),
    (
        {
            "a": agent(io={"inputs": {"n": {"from": {"runtime": "pkg/b"}, "required": False}}}),
            "b": needs("pkg/a"),
        },
        "pkg/a -> pkg/b -> pkg/a",
    ),
    (
        {
            "a": needs("b@1", io={"output": {"contract": "a@1"}}),
            "b": needs("a@1", io={"output": {"contract": "b@1"}}),
        },
        "pkg/a -> pkg/b -> pkg/a",
    ),
    ({"a": needs("pkg/b"), "b": needs("pkg/c"), "c": needs("pkg/b")}, "pkg/b -> pkg/c -> pkg/b"),
]


@pytest.mark.parametrize(("runtimes", "path"), CYCLES, ids=[path for _, path in CYCLES])
def test_cycle_is_refused_with_its_path(runtimes: dict[str, Any], path: str) -> None:
    problem = only(files({}, runtimes))
    assert problem.code == "package.cycle"
    assert path in problem.message


def test_two_cycles_are_two_problems() -> None:
    runtimes = {"a": needs("pkg/a"), "b": needs("pkg/c"), "c": needs("pkg/b"), "d": needs("pkg/a")}
    assert [code for code, _ in errors(files({}, runtimes))] == ["package.cycle"] * 2


@pytest.mark.parametrize(
    "runtimes",
    [
        {"a": agent(), "b": needs("pkg/a"), "c": needs("pkg/a"), "d": needs("pkg/b", "pkg/c")},
        {"a": needs("x@1", stage="pre-turn"), "b": agent(io={"output": {"contract": "x@1"}})},
        {
            "a": agent(
                io={
                    "inputs": {
                        "n": {
                            "from": {"runtime": "pkg/a"},
                            "scope": "committed",
                            "recordAs": "r",
                            "required": False,
                        }
                    },
                    "output": {"schema": "../../s.json", "recordAs": "r"},
                }
            )
        },
    ],
)
def test_order_without_a_circle_is_accepted(runtimes: dict[str, Any]) -> None:
    assert errors(files({}, runtimes, **{"s.json": SCHEMA})) == []


def test_later_stage_cannot_gate() -> None:
    runtimes = {"a": needs("pkg/b", stage="pre-turn"), "b": agent()}
    assert errors(files({}, runtimes)) == [("package.combination", "schedule.needs[0]")]
    runtimes = {"a": needs("pkg/b", stage="pre-turn", field="after"), "b": agent()}
    assert errors(files({}, runtimes)) == []


def test_subagent_cannot_be_waited_for() -> None:
    runtimes = {"a": needs("pkg/b"), "b": {"schedule": {"subagentOnly": True}}}
    assert errors(files({}, runtimes)) == [("package.combination", "schedule.needs[0]")]


def test_committed_input_names_an_export_of_its_producer() -> None:
    inputs = {"n": {"from": {"runtime": "pkg/b"}, "scope": "committed", "recordAs": "facts"}}
    reader = agent(io={"inputs": inputs})
    writer = agent(io={"output": {"schema": "../../s.json", "recordAs": "facts"}})
    assert errors(files({}, {"a": reader, "b": writer}, **{"s.json": SCHEMA})) == []
    assert errors(files({}, {"a": reader, "b": agent()})) == [("package.reference", "io.inputs.n.recordAs")]
