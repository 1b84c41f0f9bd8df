"""`PLUGIN.md`: fields, limits, combinations."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.manifest import PluginManifest, in_range
from kernel.manifest.problems import validate
from kernel.manifest.versions import is_range


def refused(data: dict[str, Any]) -> list[tuple[str, str]]:
    value, found = validate(PluginManifest, data, file="PLUGIN.md", lines={})
    assert (value is None) == bool(found)
    return [(problem.code.value, problem.path) for problem in sorted(found)]


def setting(**fields: Any) -> dict[str, Any]:
    return {"contributes": {"settings": [{"key": "k", "type": "number", **fields}]}}


def authoring(**fields: Any) -> dict[str, Any]:
    return {"contributes": {"data": {"d": {"authoring": fields}}}}


LINK = {"label": "Site", "url": "https://a.io"}

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"version": "1.0"}, "package.field", "version"),
    ({"version": 1}, "package.field", "version"),
    ({"covel": "^0.0.5"}, "package.range", "covel"),
    ({"turnwright": ">=0.1 || <0.0.1"}, "package.range", "turnwright"),
    ({"license": "x" * 65}, "package.field", "license"),
    ({"homepage": "http://a.io"}, "package.field", "homepage"),
    ({"author": {"url": "https://a.io"}}, "package.field", "author.name"),
    ({"author": {"name": "x" * 81}}, "package.field", "author.name"),
    ({"author": {"name": "x", "about": "x" * 501}}, "package.field", "author.about"),
    ({"author": {"name": "x", "url": "ftp://a.io"}}, "package.field", "author.url"),
    ({"author": {"name": "x", "links": [LINK] * 7}}, "package.field", "author.links"),
    (
        {"author": {"name": "x", "links": [{**LINK, "label": "x" * 41}]}},
        "package.field",
        "author.links[0].label",
    ),
    ({"requires": ["facts"]}, "package.field", "requires[0]"),
    ({"requires": ["a@1", "a@1"]}, "package.field", "requires"),
    ({"requires": ["a@1"], "optional": ["a@1"]}, "package.combination", "optional[0]"),
    ({"conflicts": ["ui.slot@1"]}, "package.combination", "conflicts[0]"),
    ({"conflicts": ["No Such"]}, "package.field", "conflicts[0]"),
    ({"contracts": {"bad": {"schema": "./s.json"}}}, "package.field", "contracts.bad"),
    ({"provides": [{"contract": "a@1", "defualt": True}]}, "package.field", "provides[0].defualt"),
    ({"kind": "world"}, "package.field", "kind"),
    ({"memoryBlocks": []}, "package.retired-field", "memoryBlocks"),
    ({"dataSchemas": {}}, "package.retired-field", "dataSchemas"),
    ({"contributes": {"tools": ["a", {"name": "a"}]}}, "package.combination", "contributes.tools[1].name"),
    (
        {"contributes": {"tools": [{"name": "a", "risk": "mild"}]}},
        "package.field",
        "contributes.tools[0].risk",
    ),
    ({"contributes": {"tools": [" "]}}, "package.field", "contributes.tools[0]"),
    ({"contributes": {"hooks": ["PreTool"]}}, "package.field", "contributes.hooks[0]"),
    ({"contributes": {"events": [{"topic": "Bad Topic"}]}}, "package.field", "contributes.events[0].topic"),
    (
        {"contributes": {"events": [{"topic": "a"}, {"topic": "a"}]}},
        "package.combination",
        "contributes.events[1].topic",
    ),
    ({"contributes": {"data": {"_jobs": {}}}}, "package.field", "contributes.data._jobs"),
    (
        {"contributes": {"data": {"d": {"accepts": ["a@1"]}}}},
        "package.combination",
        "contributes.data.d.schema",
    ),
    (
        {"contributes": {"extensions": [{"point": "a@1", "id": "static-prompt"}]}},
        "package.combination",
        "contributes.extensions[0].id",
    ),
    (
        {"contributes": {"prompt": [{"id": "a", "content": "x", "position": "top"}]}},
        "package.field",
        "contributes.prompt[0].position",
    ),
    (
        {
            "contributes": {
                "commands": [{"name": "c", "arguments": [{"name": "a", "variadic": True}, {"name": "b"}]}]
            }
        },
        "package.combination",
        "contributes.commands[0].arguments[0].variadic",
    ),
    (setting(type="dial"), "package.field", "contributes.settings[0].type"),
    (setting(type="text", min=1), "package.combination", "contributes.settings[0].min"),
    (setting(min=3, max=1), "package.combination", "contributes.settings[0].min"),
    (setting(options=["a"]), "package.combination", "contributes.settings[0].options"),
    (setting(type="select"), "package.combination", "contributes.settings[0].options"),
    (
        setting(type="select", options=["a"], default="b"),
        "package.combination",
        "contributes.settings[0].default",
    ),
    (setting(type="integer", default=1.5), "package.combination", "contributes.settings[0].default"),
    (setting(type="slider", max=3, default=5), "package.combination", "contributes.settings[0].default"),
    (setting(type="toggle", default="on"), "package.combination", "contributes.settings[0].default"),
    (setting(type="text", default=5), "package.combination", "contributes.settings[0].default"),
    (setting(default=True), "package.combination", "contributes.settings[0].default"),
    (
        authoring(source={"path": "world.yaml"}),
        "package.combination",
        "contributes.data.d.authoring.source.path",
    ),
    (
        authoring(source={"path": "../x.yaml"}),
        "package.combination",
        "contributes.data.d.authoring.source.path",
    ),
    (
        authoring(source={"path": "data/x.txt"}),
        "package.combination",
        "contributes.data.d.authoring.source.path",
    ),
    (
        authoring(generate="offer", source={"path": "d.yaml"}),
        "package.combination",
        "contributes.data.d.authoring.generate",
    ),
    (
        authoring(generate="offer", example="./e.json"),
        "package.combination",
        "contributes.data.d.authoring.generate",
    ),
    (
        setting(type="select", options=["a", {"value": "a", "label": "Again"}]),
        "package.combination",
        "contributes.settings[0].options[1].value",
    ),
    (setting(type="integer", min=0, max=0.8), "package.combination", "contributes.settings[0].max"),
    (setting(type="integer", step=0.5), "package.combination", "contributes.settings[0].step"),
    (setting(type="slot", default="My Slot"), "package.combination", "contributes.settings[0].default"),
    (setting(label="a\u202eb"), "package.field", "contributes.settings[0].label"),
    ({"displayName": "zero\u200bwidth"}, "package.field", "displayName"),
    ({"contributes": {"tools": ["m\u0430rk"]}}, "package.field", "contributes.tools[0]"),
    ({"contributes": {"tools": ["mark", "Mark"]}}, "package.combination", "contributes.tools[1].name"),
    (
        {"contributes": {"extensions": [{"point": "a@1", "id": "\u0430"}]}},
        "package.field",
        "contributes.extensions[0].id",
    ),
    (
        {"contributes": {"settings": [{"key": "k", "type": "text"}, {"key": "K", "type": "text"}]}},
        "package.combination",
        "contributes.settings[1].key",
    ),
    ({"contributes": {"data": {"facts": {}, "Facts": {}}}}, "package.combination", "contributes.data.Facts"),
    (
        {
            "contributes": {
                "data": {
                    "a": {"authoring": {"source": {"path": "data/x.yaml"}}},
                    "b": {"authoring": {"source": {"path": "./data/x.yaml"}}},
                }
            }
        },
        "package.combination",
        "contributes.data.b.authoring.source.path",
    ),
    (
        {"contributes": {"commands": [{"name": "look", "aliases": ["l"]}, {"name": "l"}]}},
        "package.combination",
        "contributes.commands[1].name",
    ),
    (
        {"contributes": {"commands": [{"name": "look", "aliases": ["look"]}]}},
        "package.combination",
        "contributes.commands[0].aliases[0]",
    ),
    (
        {"contributes": {"actions": ["peek"], "commands": [{"name": "look", "action": "peak"}]}},
        "package.reference",
        "contributes.commands[0].action",
    ),
    ({"provides": ["a@1", {"contract": "a@1"}]}, "package.combination", "provides[1]"),
    ({"provides": ["a@1"], "conflicts": ["a@1"]}, "package.combination", "conflicts[0]"),
    ({"id": "pkg", "conflicts": ["pkg"]}, "package.combination", "conflicts[0]"),
]


@pytest.mark.parametrize(("data", "code", "path"), REFUSED, ids=[f"{path}" for _, _, path in REFUSED])
def test_field_is_refused(data: dict[str, Any], code: str, path: str) -> None:
    assert refused(data) == [(code, path)]


ACCEPTED: list[dict[str, Any]] = [
    {"contributes": {"tools": ["admin.tools.list", "do it"], "actions": ["peek", {"name": "go"}]}},
    {"contributes": {"actions": [{"name": "go"}], "commands": [{"name": "walk", "action": "go"}]}},
    {"displayName": "\U0001f469\u200d\U0001f680 \u7b14\u8bb0"},
    {},
    {"id": "pkg", "kind": "core", "version": "0.1.0", "covel": ">=0.0.51", "turnwright": ">=0.0.1 <1"},
    {"provides": ["a@1", {"contract": "b@1", "default": True}], "conflicts": ["c@1", "other-package"]},
    {"author": {"name": "Jane Doe", "url": "https://example.com", "about": "x" * 500, "links": [LINK] * 6}},
    {"contributes": {"hooks": ["PreToolUse", {"event": "TurnStart", "enforce": "pre"}]}},
    {"contributes": {"services": ["a@1", {"contract": "a@1", "modelFacing": True, "access": "write"}]}},
    {
        "contributes": {
            "actions": ["a", {"name": "b"}],
            "wires": ["w"],
            "forms": {"f": {}},
            "ui": {"right": []},
        }
    },
    {"contributes": {"prompt": [{"id": "a", "content": "x", "position": {"depth": 3}}]}},
    {"contributes": {"datasets": {"coins": {"namespace": "purse", "schema": "./s.json"}}}},
    {"contributes": {"worldProjections": [{"from": "x", "handler": "./p.py"}]}},
    setting(type="select", options=["a", {"value": "b", "label": "B"}], default="b"),
    setting(type="integer", min=0, max=5, step=1, default=3),
    setting(type="toggle", default=False),
    setting(type="slot", default="story"),
    setting(type="slider", min=0, max=1, default=0.5),
    authoring(
        title="T",
        hint="H",
        example="./e.json",
        generate="default",
        source={"path": "data/facts.yaml"},
    ),
    authoring(source={"path": "portraits", "visibility": "hidden"}, characterField="goals"),
    {"permissions": {"http": [{"origin": "https://api.example.com"}]}},
]


@pytest.mark.parametrize("data", ACCEPTED, ids=range(len(ACCEPTED)))
def test_field_is_accepted(data: dict[str, Any]) -> None:
    assert refused(data) == []


def test_tool_risk_is_read() -> None:
    data = {"contributes": {"tools": ["a", {"name": "b", "risk": "write", "needsApproval": True}]}}
    tools = PluginManifest.model_validate(data).contributes.tools
    assert [(tool.name, tool.risk, tool.needs_approval) for tool in tools] == [
        ("a", None, None),
        ("b", "write", True),
    ]


def test_dataset_offers_every_tool() -> None:
    data = {"contributes": {"datasets": {"coins": {"namespace": "purse", "schema": "./s.json"}}}}
    dataset = PluginManifest.model_validate(data).contributes.datasets["coins"]
    assert dataset.tools == ("get", "list", "upsert", "update")


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_manifest_that_is_no_map_is_refused(data: Any) -> None:
    _, (problem,) = validate(PluginManifest, data, file="PLUGIN.md", lines={})
    assert "does not hold a map" in problem.message


@pytest.mark.parametrize(
    ("version", "text", "inside"),
    [
        ("0.0.51", ">=0.0.51", True),
        ("0.0.51", ">0.0.51", False),
        ("0.0.51", "<0.0.51", False),
        ("0.0.51", "<=0.0.51", True),
        ("0.0.51", "=0.0.51", True),
        ("0.0.51", ">=0.0.9 <0.1.0", True),
        ("0.0.51", ">=0.1.0", False),
        ("0.1.0", ">=0.1", True),
        ("0.10.0", ">=0.9", True),
        ("0.1.0", "nonsense", False),
    ],
)
def test_version_range(version: str, text: str, inside: bool) -> None:
    assert in_range(version, text) is inside


@pytest.mark.parametrize(
    "text", ["", " ", "1.0.0", "~1.0.0", ">=1.0.0-beta", ">=01.0.0", ">= 1.0.0", ">=1.0.0," * 99]
)
def test_text_is_no_range(text: str) -> None:
    assert not is_range(text)


def test_every_field_is_described() -> None:
    def missing(schema: Any, at: str = "") -> list[str]:
        if isinstance(schema, list):
            return [name for item in schema for name in missing(item, at)]
        if not isinstance(schema, dict):
            return []
        own = [f"{at}.{n}" for n, f in schema.get("properties", {}).items() if "description" not in f]
        return own + [name for key, inner in schema.items() for name in missing(inner, f"{at}/{key}")]

    assert missing(PluginManifest.model_json_schema()) == []
