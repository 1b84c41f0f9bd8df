"""Runtime manifests: what is refused, where, and which defaults are in force."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.manifest import DetachedLimits, ForcedTool, RuntimeManifest
from kernel.manifest.problems import validate

from .packages import AUTO, MANUAL, runtime

STORY = {"visibility": "story"}
SUB = {"subagentOnly": True}
REFERENCE = {"contract": "facts@1"}


def refused(data: dict[str, Any]) -> list[tuple[str, str]]:
    value, found = validate(RuntimeManifest, {"schedule": AUTO, **data}, file="RUNTIME.md", lines={})
    assert (value is None) == bool(found)
    return [(problem.code.value, problem.path) for problem in sorted(found)]


def binding(**fields: Any) -> dict[str, Any]:
    return {"io": {"inputs": {"n": {"from": REFERENCE, **fields}}}}


COMBINATIONS: list[tuple[dict[str, Any], str]] = [
    ({"schedule": {}}, "schedule.stage"),
    ({"schedule": {"stage": "audit", "trigger": {"type": "manual"}}}, "schedule.stage"),
    ({"schedule": {"trigger": {"type": "event"}}}, "schedule.trigger.topic"),
    ({"schedule": {"stage": "audit", "trigger": {"topic": "a.b"}}}, "schedule.trigger.topic"),
    ({"schedule": {**MANUAL, "every": 2}}, "schedule.every"),
    ({"schedule": {"stage": "narrative", "detached": True}}, "schedule.detached"),
    ({"schedule": {**MANUAL, "detached": True}}, "schedule.detached"),
    ({"schedule": {**AUTO, "detached": {"maxSettleWaitMs": 5}}}, "schedule.detached.maxSettleWaitMs"),
    ({"schedule": {**AUTO, "background": True}}, "schedule.background"),
    ({"schedule": {**AUTO, "needs": [{**REFERENCE, "scope": "session"}]}}, "schedule.needs[0].scope"),
    ({"schedule": {**MANUAL, "background": True}, **binding()}, "io.inputs.n.scope"),
    ({"schedule": {**SUB, "stage": "audit"}}, "schedule.stage"),
    ({"schedule": {**SUB, "needs": ["a@1"]}}, "schedule.needs"),
    ({"schedule": {**SUB, "after": ["a@1"]}}, "schedule.after"),
    ({"schedule": {**SUB, "background": True}}, "schedule.background"),
    ({"schedule": {**SUB, "every": 2}}, "schedule.every"),
    ({"schedule": {**SUB, "trigger": {"type": "auto"}}}, "schedule.trigger.type"),
    ({"schedule": SUB, "guard": "./g.py"}, "guard"),
    ({"schedule": SUB, "function": {}}, "function"),
    ({"schedule": SUB, "io": STORY}, "io.visibility"),
    ({"schedule": SUB, "io": {"output": {"schema": "s", "recordAs": "r"}}}, "io.output.recordAs"),
    ({"agent": {}, "function": {}}, "function"),
    ({"agent": {"finishWith": "t", "completion": {"require": "explicit"}}}, "agent.finishWith"),
    ({"io": {"output": {"recordAs": "r"}}}, "io.output.recordAs"),
    (binding(scope="committed", recordAs="r", select="/a"), "io.inputs.n.select"),
    (binding(scope="committed", recordAs="r", select=""), "io.inputs.n.select"),
    (binding(scope="committed"), "io.inputs.n.recordAs"),
    (binding(recordAs="r"), "io.inputs.n.recordAs"),
    (binding(accepts="contract:Nope"), "io.inputs.n.accepts"),
    (
        {"io": {"inputs": {"n": {"from": {"kernel": "operations@1"}, "required": False}}}},
        "io.inputs.n.required",
    ),
    ({"io": {**STORY, "inputs": {"n": {"from": REFERENCE}}}}, "io.inputs.n.required"),
    ({"io": {**STORY, "concealed": True}}, "io.concealed"),
    ({"io": {"selfData": [{"namespace": "_hidden.x", "as": "<x>"}]}}, "io.selfData[0].namespace"),
    ({"agent": {"loop": {"stream": True}}}, "agent.loop.stream"),
    ({"agent": {"loop": {"steering": True}}}, "agent.loop.steering"),
    ({"agent": {"loop": {"truncation": "accept"}}}, "agent.loop.truncation"),
    ({"io": STORY, "agent": {"loop": {"stream": False, "truncation": "accept"}}}, "agent.loop.truncation"),
    (
        {"agent": {"loop": {"finalizer": {"deadlineReserveMs": 120_000}}}},
        "agent.loop.finalizer.deadlineReserveMs",
    ),
]


@pytest.mark.parametrize(("data", "path"), COMBINATIONS, ids=[path for _, path in COMBINATIONS])
def test_combination_is_refused(data: dict[str, Any], path: str) -> None:
    assert refused(data) == [("package.combination", path)]


VALUES: list[tuple[dict[str, Any], str]] = [
    ({"schedule": {"stage": "post_turn"}}, "schedule.stage"),
    ({"schedule": {**AUTO, "every": 0}}, "schedule.every"),
    ({"schedule": {**AUTO, "every": True}}, "schedule.every"),
    ({"schedule": {**AUTO, "detached": "yes"}}, "schedule.detached"),
    (
        {"schedule": {**AUTO, "detached": {"settle": True, "maxSettleWaitMs": 120_001}}},
        "schedule.detached.maxSettleWaitMs",
    ),
    ({"schedule": {**AUTO, "needs": [3]}}, "schedule.needs[0]"),
    ({"schedule": {**AUTO, "needs": ["Facts@1"]}}, "schedule.needs[0]"),
    ({"schedule": {**AUTO, "after": [{"runtime": "a", "contract": "a@1"}]}}, "schedule.after[0].runtime"),
    ({"schedule": {**AUTO, "after": [{"runtime": "a", "scope": "turn"}]}}, "schedule.after[0].scope"),
    (binding(select="segments"), "io.inputs.n.select"),
    (binding(select="/a~2"), "io.inputs.n.select"),
    ({"io": {"inputs": {"n": {"from": {}}}}}, "io.inputs.n.from"),
    ({"io": {"inputs": {"n": {"from": {"kernel": "clock@1"}}}}}, "io.inputs.n.from.kernel"),
    ({"io": {"inputs": {"n": {"from": {"contract": "a@0"}}}}}, "io.inputs.n.from.contract"),
    ({"io": {"output": {"contract": "facts"}}}, "io.output.contract"),
    ({"io": {"selfData": [{"namespace": "x", "as": "x"}]}}, "io.selfData[0].as"),
    ({"agent": {"loop": {"maxRetries": 6}}}, "agent.loop.maxRetries"),
    ({"agent": {"loop": {"timeoutMs": "120"}}}, "agent.loop.timeoutMs"),
    ({"agent": {"loop": {"timeoutMs": 1.5}}}, "agent.loop.timeoutMs"),
    ({"agent": {"toolChoice": "none"}}, "agent.toolChoice"),
    ({"agent": {"toolChoice": 3}}, "agent.toolChoice"),
    ({"agent": {"history": {}}}, "agent.history.maxTurns"),
    ({"agent": {"tools": {"defer": False}}}, "agent.tools.defer"),
    ({"agent": {"tools": {"datasets": [{"dataset": "d"}]}}}, "agent.tools.datasets[0].tools"),
    ({"function": {"tools": {"services": []}}}, "function.tools.services"),
    ({"effects": {"reads": ["state:*", "state:*"]}}, "effects.reads"),
    (
        {"permissions": {"http": [{"origin": "https://a.io", "methods": ["OPTIONS"]}]}},
        "permissions.http[0].methods[0]",
    ),
    (
        {"permissions": {"http": [{"origin": "https://a.io", "methods": ["GET", "GET"]}]}},
        "permissions.http[0].methods",
    ),
    ({"io": None}, "io"),
    ({"agent": []}, "agent"),
]


@pytest.mark.parametrize(("data", "path"), VALUES, ids=[path for _, path in VALUES])
def test_value_is_refused(data: dict[str, Any], path: str) -> None:
    assert refused(data) == [("package.field", path)]


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("http://a.io", "does not start with https"),
        ("https://u:p@a.io", "credentials"),
        ("https://a.io?x", "query"),
        ("https://a.io/", "a path"),
        ("https://a.io:99999", "host name"),
        ("https://", "host name"),
    ],
)
def test_origin_is_refused_with_its_fault(origin: str, words: str) -> None:
    data = {"schedule": AUTO, "permissions": {"http": [{"origin": origin}]}}
    _, (problem,) = validate(RuntimeManifest, data, file="f", lines={})
    assert words in problem.message


@pytest.mark.parametrize(
    "origin", ["https://api.example.com", "https://API.example.com:8443", "https://10.0.0.1"]
)
def test_origin_is_accepted(origin: str) -> None:
    assert runtime(permissions={"http": [{"origin": origin}]}).permissions.http[0].origin == origin.lower()


def test_missing_schedule_is_named() -> None:
    _, (problem,) = validate(RuntimeManifest, {}, file="f", lines={})
    assert problem.path == "schedule"


def test_every_problem_is_reported_at_once() -> None:
    data = {"schedule": {}, "agent": {"loop": {"maxRetries": 9}}, "color": 1}
    _, found = validate(RuntimeManifest, data, file="f", lines={})
    assert sorted(problem.path for problem in found) == ["agent.loop.maxRetries", "color", "schedule.stage"]


@pytest.mark.parametrize(
    ("data", "path", "words", "accepted"),
    [
        (
            {"agent": {"loop": {"maxRetires": 1}}},
            "agent.loop.maxRetires",
            "did you mean maxRetries",
            "maxRetries",
        ),
        (
            {"io": {"inputs": {"n": {"form": 1, "from": REFERENCE}}}},
            "io.inputs.n.form",
            "did you mean from",
            "from",
        ),
        ({"schedule": {**AUTO, "trigger": {"zzz": 1}}}, "schedule.trigger.zzz", "unknown field", "topic"),
        (
            {"schedule": {**AUTO, "needs": [{"contract": "a@1", "scop": 1}]}},
            "schedule.needs[0].scop",
            "scope",
            "scope",
        ),
        ({"contributes": {}}, "contributes", "belongs to the package", "PLUGIN.md"),
        ({"id": "x"}, "id", "belongs to the package", "PLUGIN.md"),
    ],
)
def test_unknown_field_names_the_nearest(data: dict[str, Any], path: str, words: str, accepted: str) -> None:
    _, (problem,) = validate(RuntimeManifest, {"schedule": AUTO, **data}, file="f", lines={})
    assert problem.path == path
    assert words in problem.message
    assert accepted in problem.accepted


@pytest.mark.parametrize(
    ("data", "path", "accepted"),
    [
        ({"type": "agent"}, "type", "function: {}"),
        ({"stage": "audit"}, "stage", "schedule.stage"),
        ({"outputKind": "story"}, "outputKind", "io.visibility"),
        ({"schedule": {**AUTO, "interval": 3}}, "schedule.interval", "schedule.every"),
        (
            {"schedule": {"stage": "audit", "trigger": {"type": "scheduled"}}},
            "schedule.trigger.type",
            "schedule.every",
        ),
        ({"io": {"visibility": "plugin"}}, "io.visibility", "system"),
        ({"agent": {"llm": {}}}, "agent.llm", "agent.toolChoice"),
        ({"agent": {"loop": {"completion": {}}}}, "agent.loop.completion", "agent.completion"),
    ],
)
def test_retired_name_says_what_stands_for_it(data: dict[str, Any], path: str, accepted: str) -> None:
    _, (problem,) = validate(RuntimeManifest, {"schedule": AUTO, **data}, file="f", lines={})
    assert (problem.code.value, problem.path) == ("package.retired-field", path)
    assert accepted in problem.accepted


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("facts.index@2", {"contract": "facts.index@2", "cardinality": "one", "scope": "turn"}),
        ("pkg/extract", {"runtime": "pkg/extract", "scope": "turn"}),
        ("pkg", {"runtime": "pkg", "scope": "turn"}),
    ],
)
def test_bare_reference_is_a_contract_when_it_ends_in_a_version(written: str, read: dict[str, str]) -> None:
    manifest = runtime(schedule={**AUTO, "needs": [written]})
    assert manifest.schedule.needs[0].model_dump() == read


def test_loop_of_a_story() -> None:
    limits = runtime(schedule={"stage": "narrative"}, io=STORY, agent={}).loop_limits
    assert (limits.timeout_ms, limits.call_timeout_ms, limits.max_retries) == (240_000, 120_000, 1)
    assert (limits.stream, limits.steering, limits.truncation) == (True, True, "accept")
    assert (limits.profile, limits.fallback) == ("story", "answer-without-tools")


def test_loop_of_another_runtime() -> None:
    limits = runtime().loop_limits
    assert (limits.timeout_ms, limits.call_timeout_ms, limits.max_retries) == (120_000, 60_000, 3)
    assert (limits.stream, limits.steering, limits.truncation) == (False, False, "reject")
    assert (limits.profile, limits.fallback, limits.max_steps) == ("system", "fail", 32)
    assert (limits.idle_timeout_ms, limits.first_token_timeout_ms) == (120_000, None)
    assert (limits.loop_detection, limits.max_recursion_depth) == (3, 10)
    assert limits.corrections.model_dump() == {
        "tool_use": 1,
        "review": 2,
        "loop_perturbation": 1,
        "output_repair": 1,
    }
    assert limits.finalizer.max_steps
    assert limits.deadline_reserve_ms == 0


def test_subagent_without_a_profile_is_an_actor() -> None:
    limits = runtime(schedule=SUB).loop_limits
    assert (limits.profile, limits.fallback, limits.timeout_ms) == ("actor", "answer-without-tools", 120_000)


def test_subagent_keeps_a_named_profile() -> None:
    assert runtime(schedule=SUB, agent={"loop": {"profile": "system"}}).loop_limits.profile == "system"


def test_story_without_streaming_rejects_a_cut_reply() -> None:
    limits = runtime(io=STORY, agent={"loop": {"stream": False}}).loop_limits
    assert limits.truncation == "reject"


def test_story_profile_needs_a_story() -> None:
    found = refused({"agent": {"loop": {"profile": "story"}}})
    assert found == [("package.combination", "agent.loop.profile")] * 2


def test_story_may_use_another_profile() -> None:
    limits = runtime(io=STORY, agent={"loop": {"profile": "system"}}).loop_limits
    assert (limits.stream, limits.timeout_ms) == (False, 240_000)


def test_zero_is_not_a_default() -> None:
    limits = runtime(
        agent={"loop": {"maxRetries": 0, "loopDetection": 0, "maxRecursionDepth": 0}}
    ).loop_limits
    assert (limits.max_retries, limits.loop_detection, limits.max_recursion_depth) == (0, 0, 0)


def test_at_most_half_of_the_time_is_reserved() -> None:
    loop = {"timeoutMs": 10_000, "finalizer": {"deadlineReserveMs": 9_000}}
    assert runtime(agent={"loop": loop}).loop_limits.deadline_reserve_ms == 5_000


@pytest.mark.parametrize(
    ("fields", "slot"),
    [
        ({}, "plugin"),
        ({"io": STORY}, "story"),
        ({"agent": {"model": "utility"}}, "utility"),
        ({"function": {}}, None),
        ({"function": {"model": "memory"}}, "memory"),
    ],
)
def test_model_slot(fields: dict[str, Any], slot: str | None) -> None:
    assert runtime(**fields).model_slot == slot


def test_finish_with_forces_a_tool_call() -> None:
    assert runtime(agent={"finishWith": "t"}).agent_settings.forced_choice == "required"
    forced = runtime(agent={"finishWith": "t", "toolChoice": {"name": "u"}}).agent_settings.forced_choice
    assert forced == ForcedTool(name="u")
    assert runtime().agent_settings.forced_choice is None


def test_function_takes_every_default() -> None:
    manifest = runtime(function={})
    assert manifest.kind == "function"
    assert manifest.function is not None
    assert manifest.function.timeout_ms == 120_000


@pytest.mark.parametrize(
    ("detached", "limits"),
    [
        (False, None),
        (True, DetachedLimits(False, 30_000, 300_000, 120_000)),
        ({}, DetachedLimits(False, 30_000, 300_000, 120_000)),
        ({"settle": True, "maxSettleWaitMs": 5}, DetachedLimits(True, 5, 300_000, 120_000)),
        ({"maxQueueMs": 7, "maxExecutionMs": 8}, DetachedLimits(False, 30_000, 7, 8)),
    ],
)
def test_detached_limits(detached: Any, limits: DetachedLimits | None) -> None:
    assert runtime(schedule={**AUTO, "detached": detached}).schedule.detached_limits == limits


def test_subagent_is_manual() -> None:
    assert runtime(schedule=SUB).schedule.activation == "manual"
    assert runtime(schedule={**SUB, "trigger": {"type": "manual"}}).schedule.activation == "manual"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("inventory.items@1", "inventory-items"),
        ({"contract": "inventory.items@1", "as": "bag"}, "bag"),
    ],
)
def test_service_tool_name(written: Any, name: str) -> None:
    manifest = runtime(agent={"tools": {"services": [written]}})
    assert manifest.agent_settings.tools.services[0].tool_name == name


def test_session_scope_is_valid_on_setup() -> None:
    runtime(schedule={"stage": "setup", "needs": [{**REFERENCE, "scope": "session"}]})


def test_models_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        runtime().description = "x"  # type: ignore[misc]


def test_every_field_is_described() -> None:
    def missing(schema: Any, at: str = "") -> list[str]:
        if isinstance(schema, list):
            return [name for item in schema for name in missing(item, at)]
        if not isinstance(schema, dict):
            return []
        own = [f"{at}.{n}" for n, f in schema.get("properties", {}).items() if "description" not in f]
        return own + [name for key, inner in schema.items() for name in missing(inner, f"{at}/{key}")]

    assert missing(RuntimeManifest.model_json_schema()) == []


def test_manifest_survives_being_written_and_read() -> None:
    manifest = runtime(
        schedule={**AUTO, "needs": ["a@1", "pkg/b"], "after": [REFERENCE], "detached": {"settle": True}},
        io={
            "inputs": {"k": {"from": {"kernel": "operations@1"}}, "n": {"from": REFERENCE, "required": False}}
        },
        agent={
            "toolChoice": {"name": "t"},
            "tools": {"defer": ["t"], "services": ["a@1"], "datasets": ["d"]},
        },
    )
    written = manifest.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert RuntimeManifest.model_validate(written) == manifest
    assert RuntimeManifest.model_validate({**written, "schedule": manifest.schedule}) == manifest
