"""Reading a package: layout, paths, modules, tools, hostile input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.manifest import Diagnostic, load_package, references
from kernel.manifest import files as package_files

from .packages import AUTO, GUARD, HANDLER, MANUAL, REGISTER, errors, files, load, manifest, package, text

SCHEMA = b'{"type": "object"}'
TOOLS = {"contributes": {"tools": ["mark", "wipe"]}}
ENTRY = {"server/__init__.py": REGISTER}


def agent(**fields: Any) -> dict[str, Any]:
    return {"schedule": AUTO, **fields}


def only(content: dict[str, bytes], **options: Any) -> Diagnostic:
    (problem,) = load(content, **options).errors
    return problem


# Layout


def test_single_runtime_lives_in_the_plugin_file() -> None:
    found = package(files({"runtime": {"schedule": AUTO}}))
    (runtime,) = found.runtimes
    assert (runtime.id, runtime.folder, runtime.file, runtime.body) == ("pkg", "", "PLUGIN.md", "Do it.")
    assert (found.id, found.version, runtime.kind) == ("pkg", "0.0.0", "agent")


def test_runtimes_are_sorted_by_id() -> None:
    found = package(files({}, {"b": agent(), "a": agent(), "a-b": agent()}))
    assert [runtime.id for runtime in found.runtimes] == ["pkg/a", "pkg/a-b", "pkg/b"]
    assert found.runtime("pkg/b") is found.runtimes[2]
    assert found.runtime("pkg/c") is None


def test_package_may_have_no_runtime() -> None:
    assert package(files({"contributes": {"hooks": ["TurnStart"]}}, **ENTRY)).runtimes == ()


def test_inline_runtime_and_runtimes_cannot_coexist() -> None:
    problem = only(files({"runtime": {"schedule": AUTO}}, {"a": agent()}))
    assert problem.message == "inline runtime and runtimes/ cannot coexist"
    assert problem.code == "package.layout"


@pytest.mark.parametrize(
    ("content", "code", "file"),
    [
        ({}, "package.layout", "PLUGIN.md"),
        ({"plugin.md": b""}, "package.layout", "PLUGIN.md"),
        ({"PLUGIN.md": b"no frontmatter"}, "package.layout", "PLUGIN.md"),
        (files(**{"runtimes/a/notes.txt": b""}), "package.layout", "runtimes/a/RUNTIME.md"),
        (files(**{"RUNTIME.md": manifest(agent())}), "package.layout", "RUNTIME.md"),
        (files({}, {"Bad Name": agent()}), "package.layout", "runtimes/Bad Name/RUNTIME.md"),
        (files({"id": "other"}), "package.layout", "PLUGIN.md"),
        (files([]), "package.field", "PLUGIN.md"),
    ],
)
def test_layout_is_refused(content: dict[str, bytes], code: str, file: str) -> None:
    problem = only(content)
    assert (problem.code, problem.file) == (code, file)


@pytest.mark.parametrize("name", ["", "Pkg", "a/b", "1a", "a" * 65, "ä", "a\n"])
def test_folder_name_is_refused(name: str) -> None:
    assert errors(files(), name) == [("package.layout", "")]


def test_id_may_repeat_the_folder_name() -> None:
    assert package(files({"id": "pkg"})).id == "pkg"


def test_too_many_runtimes_are_refused() -> None:
    found = errors(files({}, {f"r{n}": agent() for n in range(65)}))
    assert found == [("package.size", "")]


def test_empty_frontmatter_is_an_empty_manifest() -> None:
    assert package({"PLUGIN.md": b"---\n---\nHello\n"}).runtimes == ()


def test_problems_of_all_files_are_collected_in_order() -> None:
    content = files({"versoin": 1}, {"b": agent(guard="./none.py"), "a": {"schedule": {}}})
    found = load(content)
    assert [problem.file for problem in found.errors] == ["PLUGIN.md", "runtimes/a/RUNTIME.md"]
    content = files({}, {"b": agent(guard="./none.py"), "a": {"schedule": {}}})
    assert [problem.file for problem in load(content).errors] == [
        "runtimes/a/RUNTIME.md",
        "runtimes/b/RUNTIME.md",
    ]


def test_problem_renders_with_file_line_and_code() -> None:
    problem = only({"PLUGIN.md": text("description: x\nverson: 0.1.0")})
    assert problem.render() == (
        "PLUGIN.md:3: package.field: verson: unknown field `verson`; did you mean version? "
        "(accepted: version)"
    )


def test_problem_inside_an_inline_runtime_has_its_line() -> None:
    problem = only({"PLUGIN.md": text("runtime:\n  schedule: { stage: audit }\n  guard: ./g.py")})
    assert (problem.path, problem.line) == ("runtime.guard", 4)


def test_nul_below_the_frontmatter_is_refused_with_its_line() -> None:
    content = {"PLUGIN.md": b"---\nruntime: { schedule: { stage: audit } }\n---\nLook.\nNow\0.\n"}
    (problem,) = load(content).errors
    assert (problem.code, problem.line, problem.message) == ("yaml.syntax", 5, "PLUGIN.md holds NUL")


def test_leftover_llm_file_is_advice() -> None:
    found = load(files(**{"llm.toml": b""}))
    assert found.package is not None
    assert [problem.file for problem in found.advice] == ["llm.toml"]


@pytest.mark.parametrize(
    ("plugin", "options", "refused"),
    [
        ({"covel": ">=0.0.51"}, {}, False),
        ({"covel": ">=0.0.52"}, {}, True),
        ({"turnwright": ">=0.0.1"}, {}, False),
        ({"turnwright": ">=0.1"}, {}, True),
        ({"turnwright": ">=0.1"}, {"product_version": "0.1.0"}, False),
    ],
)
def test_version_range(plugin: dict[str, str], options: dict[str, str], refused: bool) -> None:
    expected = [("package.range", next(iter(plugin)))] if refused else []
    assert errors(files(plugin), **options) == expected


# Paths and links

FOLLOWED = agent(io={"payloadSchema": "../../schemas/s.json"})


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "./a",
        "a\\b",
        "C:/x",
        "~/x",
        "a\u200b",
        "a\x00",
        "a\n",
        "a ",
        "x" * 241,
    ],
)
def test_stored_path_is_refused(path: str) -> None:
    assert errors(files(**{path: b""})) == [("package.path", "")]


@pytest.mark.parametrize(
    "pair", [("Readme.md", "README.md"), ("a/x", "A/y"), ("é", "e\u0301"), ("a", "a/b"), ("ﬁ", "fi")]
)
def test_colliding_paths_are_refused(pair: tuple[str, str]) -> None:
    assert errors(files(**dict.fromkeys(pair, b""))) == [("package.path", "")]


@pytest.mark.parametrize("reference", ["../../../x.json", "/x.json", "~/x.json", "C:\\x.json", "..\\x.json"])
def test_reference_that_leaves_the_package_is_refused(reference: str) -> None:
    assert errors(files({}, {"a": agent(io={"payloadSchema": reference})})) == [
        ("package.path", "io.payloadSchema")
    ]


def test_reference_starts_at_its_manifest() -> None:
    found = package(files({}, {"a": FOLLOWED}, **{"schemas/s.json": SCHEMA}))
    assert found.runtimes[0].payload_schema == {"type": "object"}
    assert found.schemas == {"schemas/s.json": {"type": "object"}}


def test_missing_file_is_named() -> None:
    problem = only(files({}, {"a": FOLLOWED}))
    assert (problem.code, problem.path) == ("package.reference", "io.payloadSchema")


@pytest.mark.parametrize(
    "links",
    [
        {"schemas": "/etc"},
        {"schemas": "../outside"},
        {"schemas": "x/../../outside"},
        {"schemas": "schemas"},
        {"one": "two", "two": "one"},
        {"deep/er/link": "../..", "schemas": "deep/er/link/../outside"},
    ],
)
def test_link_that_leaves_the_package_is_refused(links: dict[str, str]) -> None:
    assert {code for code, _ in errors(files(), links=links)} == {"package.path"}


@pytest.mark.parametrize(
    "links",
    [
        {"schemas": "real"},
        {"schemas": "one", "one": "./real/../real"},
        {"schemas/s.json": "../real/s.json"},
    ],
)
def test_link_inside_the_package_is_followed(links: dict[str, str]) -> None:
    found = package(files({}, {"a": FOLLOWED}, **{"real/s.json": SCHEMA}), links=links)
    assert list(found.schemas) == ["real/s.json"]


def test_runtime_folder_may_be_a_link() -> None:
    content = files(**{"shared/RUNTIME.md": manifest(agent())})
    assert package(content, links={"runtimes/a": "../shared"}).runtimes[0].id == "pkg/a"


def test_runtime_folder_in_a_broken_link_is_one_problem() -> None:
    assert errors(files(), links={"runtimes/a": "/etc"}) == [("package.path", "")]


@pytest.mark.parametrize(("name", "limit"), [("MAX_FILES", 1), ("MAX_PACKAGE_BYTES", 10)])
def test_large_package_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
    monkeypatch.setattr(package_files, name, limit)
    assert errors(files(**{"a": b"", "b": b""})) == [("package.size", "")]


# Modules


def test_handler_is_found_beside_its_manifest() -> None:
    found = package(files({}, {"a": agent(function={})}, **{"runtimes/a/handler.py": HANDLER}))
    assert (found.runtimes[0].kind, found.runtimes[0].handler) == ("function", "runtimes/a/handler.py")


def test_handler_and_guard_may_be_named() -> None:
    content = files(
        {
            "runtime": agent(function={"handler": "./src/run.py"}, guard="src/guard.py"),
            "entry": "./src/main.py",
        },
        **{"src/run.py": HANDLER, "src/guard.py": GUARD, "src/main.py": REGISTER},
    )
    found = package(content)
    assert (found.runtimes[0].handler, found.runtimes[0].guard) == ("src/run.py", "src/guard.py")
    assert found.entry == "src/main.py"


def test_entry_is_found_by_its_name() -> None:
    assert package(files(**ENTRY)).entry == "server/__init__.py"


@pytest.mark.parametrize(
    ("content", "code", "path"),
    [
        (files({}, {"a": agent(function={})}), "package.reference", "function"),
        (
            files({}, {"a": agent(function={})}, **{"runtimes/a/handler.js": b""}),
            "package.module",
            "function",
        ),
        (files({}, {"a": agent(function={"handler": "./h.js"})}), "package.module", "function.handler"),
        (files({}, {"a": agent(function={"handler": "./h.mjs"})}), "package.module", "function.handler"),
        (files({}, {"a": agent(function={"handler": "./h.txt"})}), "package.module", "function.handler"),
        (files({}, {"a": agent(guard="./guard.js")}), "package.module", "guard"),
        (files({}, {"a": agent(guard="./guard.py")}), "package.reference", "guard"),
        (files({"entry": "./server/index.js"}), "package.module", "entry"),
        (files(**{"server/index.js": b""}), "package.module", ""),
    ],
)
def test_module_is_refused(content: dict[str, bytes], code: str, path: str) -> None:
    assert errors(content) == [(code, path)]


@pytest.mark.parametrize(
    "part", [{"tools": ["t"]}, {"services": ["a@1"]}, {"hooks": ["TurnStart"]}, {"wires": ["w"]}]
)
def test_declaration_needs_an_entry(part: dict[str, Any]) -> None:
    assert errors(files({"contributes": part})) == [("package.reference", f"contributes.{next(iter(part))}")]
    assert errors(files({"contributes": part}, **ENTRY)) == []


# Tools


def test_only_runtime_gets_every_tool() -> None:
    assert package(files({**TOOLS, "runtime": agent()}, **ENTRY)).runtimes[0].plugin_tools == ("mark", "wipe")
    assert package(files(TOOLS, {"a": agent()}, **ENTRY)).runtimes[0].plugin_tools == ("mark", "wipe")


def test_empty_list_gives_no_tool() -> None:
    one = agent(agent={"tools": {"plugin": []}})
    assert package(files({**TOOLS, "runtime": one}, **ENTRY)).runtimes[0].plugin_tools == ()


def test_one_runtime_among_several_lists_its_own() -> None:
    runtimes = {"a": agent(), "b": agent(agent={"tools": {"plugin": ["wipe"]}})}
    found = package(files(TOOLS, runtimes, **ENTRY))
    assert [runtime.plugin_tools for runtime in found.runtimes] == [(), ("wipe",)]


def test_function_needs_a_tools_block() -> None:
    handler = {"handler.py": HANDLER, **ENTRY}
    found = package(files({**TOOLS, "runtime": agent(function={})}, **handler))
    assert found.runtimes[0].plugin_tools == ()
    found = package(files({**TOOLS, "runtime": agent(function={"tools": {}})}, **handler))
    assert found.runtimes[0].plugin_tools == ("mark", "wipe")


def with_agent(**fields: Any) -> dict[str, bytes]:
    datasets = {"coins": {"namespace": "purse", "schema": "./s.json", "tools": ["get", "list"]}}
    contributes = {**TOOLS["contributes"], "datasets": datasets}
    return files({"contributes": contributes, "runtime": agent(agent=fields)}, **{"s.json": SCHEMA}, **ENTRY)


REFUSED_TOOLS: list[tuple[dict[str, Any], str]] = [
    ({"tools": {"builtin": ["plugin-data-ste"]}}, "tools.builtin[0]"),
    ({"tools": {"builtin": ["search-tools"]}}, "tools.builtin[0]"),
    ({"tools": {"plugin": ["marks"]}}, "tools.plugin[0]"),
    ({"tools": {"plugin": ["mark"], "defer": ["wipe"]}}, "tools.defer[0]"),
    ({"tools": {"datasets": ["coin"]}}, "tools.datasets[0]"),
    ({"tools": {"datasets": [{"dataset": "coins", "tools": ["upsert"]}]}}, "tools.datasets[0]"),
    ({"finishWith": "done"}, "finishWith"),
    ({"finishWith": "mark", "tools": {"plugin": []}}, "finishWith"),
    ({"toolChoice": {"name": "done"}}, "toolChoice.name"),
    ({"completion": {"afterTools": ["mark", "done"]}}, "completion.afterTools[1]"),
]


@pytest.mark.parametrize(("fields", "path"), REFUSED_TOOLS, ids=[path for _, path in REFUSED_TOOLS])
def test_unknown_tool_is_refused(fields: dict[str, Any], path: str) -> None:
    assert errors(with_agent(**fields)) == [("package.reference", f"runtime.agent.{path}")]


@pytest.mark.parametrize(
    "fields",
    [
        {"finishWith": "mark"},
        {"finishWith": "coins-get", "tools": {"datasets": ["coins"]}},
        {"finishWith": "bag", "tools": {"services": [{"contract": "bag.items@1", "as": "bag"}]}},
        {"toolChoice": {"name": "plugin-data-set"}, "tools": {"builtin": ["plugin-data-set"]}},
        {"tools": {"defer": ["mark"]}, "completion": {"afterTools": ["wipe"]}},
        {"tools": {"defer": True}},
    ],
)
def test_tool_of_the_runtime_is_accepted(fields: dict[str, Any]) -> None:
    assert errors(with_agent(**fields)) == []


def test_a_service_for_code_alone_is_no_tool() -> None:
    services = [{"contract": "purse@1"}, {"contract": "bag@1", "modelFacing": True}]
    fields = {"tools": {"services": ["purse@1", "bag@1", "others@1"]}}
    plugin = {"contributes": {"services": services}, "runtime": agent(agent=fields)}
    assert errors(files(plugin, **ENTRY)) == [("package.reference", "runtime.agent.tools.services[0]")]


def test_two_tools_cannot_share_a_name() -> None:
    content = with_agent(tools={"services": [{"contract": "bag.items@1", "as": "mark"}]})
    assert errors(content) == [("package.combination", "runtime.agent.tools")]


def test_plugin_tool_cannot_take_a_builtin_name() -> None:
    content = files({"contributes": {"tools": ["suspend"]}}, **ENTRY)
    assert errors(content) == [("package.combination", "contributes.tools")]


def test_function_tools_are_judged() -> None:
    content = files({"runtime": agent(function={"tools": {"builtin": ["nope"]}})}, **{"handler.py": HANDLER})
    assert errors(content) == [("package.reference", "runtime.function.tools.builtin[0]")]


# Advice


@pytest.mark.parametrize(
    ("detached", "other", "words"),
    [
        ({"effects": {}}, {"schedule": {**AUTO, "needs": ["pkg/a"]}}, "pkg/b waits for it"),
        ({"effects": {}}, {"schedule": {**AUTO, "after": ["pkg/a"]}}, "pkg/b waits for it"),
        ({}, {"schedule": AUTO}, "it declares no effects"),
        ({"effects": {"writes": ["state:*"]}}, {"schedule": AUTO}, "it writes state:*"),
        (
            {"effects": {}, "io": {"output": {"schema": "../../s.json", "recordAs": "r"}}},
            {"schedule": AUTO},
            "its output is recorded (recordAs)",
        ),
    ],
)
def test_a_detached_function_that_stays_in_the_turn_is_told(
    detached: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    first = {"schedule": {**AUTO, "detached": True}, "function": {}, **detached}
    handler = {"runtimes/a/handler.py": HANDLER, "s.json": SCHEMA}
    found = load(files({}, {"a": first, "b": other}, **handler))
    said = [problem.message for problem in found.advice if problem.path == "schedule.detached"]
    assert said == [f"schedule.detached: the runtime stays in the foreground: {words}"]


def test_a_detached_function_that_may_leave_needs_no_advice() -> None:
    first = {"schedule": {**AUTO, "detached": True}, "function": {}, "effects": {"writes": ["ui:panel"]}}
    other = {"schedule": {**AUTO, "detached": True, "after": ["pkg/a"]}, "function": {}, "effects": {}}
    handler = {"runtimes/a/handler.py": HANDLER, "runtimes/b/handler.py": HANDLER}
    assert load(files({}, {"a": first, "b": other}, **handler)).problems == ()


@pytest.mark.parametrize(
    ("plugin", "body", "words"),
    [
        ({"runtime": agent()}, "", "no prompt"),
        ({"runtime": {"schedule": {**AUTO, "detached": True}}}, "x", "stays in the foreground"),
        ({"runtime": agent(effects={"reads": ["plugn-data:self:x"]})}, "x", "no known kind"),
        ({"runtime": agent(agent={"tools": {"builtin": ["plugin-data-set"]}})}, "x", "declares no effects"),
    ],
)
def test_advice_does_not_refuse(plugin: dict[str, Any], body: str, words: str) -> None:
    found = load({"PLUGIN.md": manifest(plugin, body)})
    assert found.package is not None
    assert any(words in problem.message for problem in found.advice)


def test_sound_package_has_no_problem_at_all() -> None:
    effects = {"reads": ["narrative:*"], "writes": ["plugin-data:self:facts", "http:https://a.io"]}
    assert load(files({"runtime": agent(effects=effects)})).problems == ()


# Hostile packages


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["PLUGIN.md", "runtimes/a/RUNTIME.md", "s.json", "runtimes/a", "llm.toml", "..", ""])
        | st.text(max_size=10),
        st.binary(max_size=60).map(lambda content: b"---\n" + content + b"\n---\n"),
        max_size=5,
    ),
    st.dictionaries(st.text("ab./", max_size=6), st.text("ab./", max_size=6), max_size=4),
    st.text(max_size=5),
)
def test_any_package_is_read_or_refused(content: dict[str, bytes], links: dict[str, str], name: str) -> None:
    found = load_package(content, name=name, links=links)
    assert (found.package is None) == bool(found.errors)
    assert all(problem.render() for problem in found.problems)


FIELDS = st.sampled_from(
    [
        "schedule",
        "stage",
        "io",
        "inputs",
        "from",
        "agent",
        "function",
        "tools",
        "contributes",
        "data",
        "runtime",
        "needs",
        "loop",
        "detached",
        "trigger",
        "settings",
        "provides",
        "contracts",
        "x@1",
        "events",
        "authoring",
        "defer",
        "permissions",
        "http",
        "output",
        "select",
    ]
)
SHAPES = st.recursive(
    st.sampled_from(["audit", "a@1", "pkg", "", True, None, 0, -1, 2.5, 10**18, "../x", "\u202e"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(FIELDS, SHAPES, max_size=5), st.dictionaries(FIELDS, SHAPES, max_size=5))
def test_any_manifest_is_read_or_refused(plugin: dict[str, Any], runtime: dict[str, Any]) -> None:
    found = load_package(files(plugin, {"a": runtime}), name="pkg")
    assert (found.package is None) == bool(found.errors)


def test_reading_is_the_same_every_time() -> None:
    content = files(
        {"versoin": 1, "x": 2},
        {"b": {"schedule": {}}, "a": {"schedule": {"stage": "post-turn", "needs": ["pkg/a"]}}},
    )
    backwards = dict(reversed(content.items()))
    assert load(content) == load(backwards)


def test_manual_runtime_has_no_stage() -> None:
    assert package(files({"runtime": {"schedule": MANUAL}})).runtimes[0].manifest.schedule.stage is None


def test_handler_behind_a_link_that_leaves_the_package_is_refused() -> None:
    content = files({"runtime": agent(function={})})
    found = errors(content, links={"handler.py": "/etc/handler.py"})
    assert found == [("package.reference", "runtime.function"), ("package.path", "")]


def test_package_names_its_tools() -> None:
    assert [tool.name for tool in package(files(TOOLS, **ENTRY)).tools] == ["mark", "wipe"]


def test_schemas_of_one_package_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MAX_SCHEMA_BYTES", 30)
    events = [{"topic": f"a.{name}", "schema": f"./{name}.json"} for name in "stu"]
    content = files(
        {"contributes": {"events": events}}, **dict.fromkeys(["s.json", "t.json", "u.json"], SCHEMA)
    )
    problem = only(content)
    assert (problem.code, problem.path) == ("package.size", "contributes.events[1].schema")


def test_flood_of_problems_is_cut() -> None:
    found = load(files({f"field{number}": 1 for number in range(500)})).errors
    assert len(found) == 201
    assert any("300 more problems" in problem.message for problem in found)
