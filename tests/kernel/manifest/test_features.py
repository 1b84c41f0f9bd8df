"""What parses and does not run yet is named, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.manifest import unsupported

from .packages import AUTO, GUARD, HANDLER, MANUAL, REGISTER, files, package

FILES = {
    "server/__init__.py": REGISTER,
    "handler.py": HANDLER,
    "guard.py": GUARD,
    "s.json": b'{"type": "object"}',
}
HTTP = {"http": [{"origin": "https://a.io"}]}
DATASET = {"coins": {"namespace": "purse", "schema": "./s.json"}}


def named(plugin: dict[str, Any]) -> list[str]:
    """The fields that activation refuses."""
    found = unsupported(package(files(plugin, **FILES)))
    assert {problem.code.value for problem in found} <= {"package.unsupported-feature"}
    assert all(problem.line for problem in found)
    return [problem.path for problem in found]


def runtime(**fields: Any) -> dict[str, Any]:
    return {"runtime": {"schedule": AUTO, **fields}}


def inputs(**fields: Any) -> dict[str, Any]:
    return runtime(io={"inputs": {"n": fields}})


def trigger(**fields: Any) -> dict[str, Any]:
    return runtime(schedule={**AUTO, "trigger": fields})


def loop(**fields: Any) -> dict[str, Any]:
    return runtime(io={"visibility": "story"}, agent={"loop": fields})


REFUSED: list[tuple[dict[str, Any], str]] = [
    (runtime(schedule={"stage": "setup"}), "runtime.schedule.stage"),
    (runtime(schedule={"trigger": {"type": "event", "topic": "a.b"}}), "runtime.schedule.trigger.type"),
    (trigger(startTurn=2), "runtime.schedule.trigger.startTurn"),
    (trigger(cooldownTurns=0), "runtime.schedule.trigger.cooldownTurns"),
    (trigger(maxTriggerCount=1), "runtime.schedule.trigger.maxTriggerCount"),
    (runtime(schedule={**MANUAL, "background": True}), "runtime.schedule.background"),
    (runtime(schedule={"subagentOnly": True}), "runtime.schedule.subagentOnly"),
    (runtime(guard="./guard.py"), "runtime.guard"),
    (
        inputs(**{"from": {"contract": "a@1"}, "scope": "committed", "recordAs": "r"}),
        "runtime.io.inputs.n.scope",
    ),
    (inputs(**{"from": {"kernel": "turn-digest@1"}}), "runtime.io.inputs.n.from.kernel"),
    (runtime(io={"selfData": [{"namespace": "a", "as": "<a>"}]}), "runtime.io.selfData"),
    (runtime(io={"concealed": True}), "runtime.io.concealed"),
    (runtime(agent={"completion": {"require": "explicit"}}), "runtime.agent.completion"),
    (runtime(agent={"tools": {"defer": True}}), "runtime.agent.tools.defer"),
    (runtime(agent={"tools": {"services": ["a@1"]}}), "runtime.agent.tools.services"),
    (runtime(agent={"tools": {"builtin": ["suspend"]}}), "runtime.agent.tools.builtin[0]"),
    (runtime(agent={"advertiseEvents": True}), "runtime.agent.advertiseEvents"),
    (
        runtime(agent={"history": {"maxTurns": 3, "includeSummaries": True}}),
        "runtime.agent.history.includeSummaries",
    ),
    (runtime(agent={"loop": {"profile": "actor"}}), "runtime.agent.loop.profile"),
    (loop(stream=False), "runtime.agent.loop.stream"),
    (loop(steering=True), "runtime.agent.loop.steering"),
    (loop(truncation="reject"), "runtime.agent.loop.truncation"),
    (loop(fallback="fail"), "runtime.agent.loop.fallback"),
    (loop(finalizer={"maxSteps": False}), "runtime.agent.loop.finalizer"),
    (loop(callTimeoutMs=500), "runtime.agent.loop.callTimeoutMs"),
    (loop(maxRecursionDepth=1), "runtime.agent.loop.maxRecursionDepth"),
    (loop(corrections={"review": 0}), "runtime.agent.loop.corrections.review"),
    (loop(corrections={"loopPerturbation": 0}), "runtime.agent.loop.corrections.loopPerturbation"),
    (runtime(function={"tools": {"builtin": ["emit-event"]}}), "runtime.function.tools.builtin[0]"),
    (runtime(function={"tools": {"defer": True}}), "runtime.function.tools.defer"),
    (runtime(permissions=HTTP), "runtime.permissions.http"),
    (runtime(agent={}, permissions=HTTP), "runtime.permissions.http"),
    ({"permissions": HTTP}, "permissions.http"),
    ({"contributes": {"data": {"d": {"search": {"text": ["t"]}}}}}, "contributes.data.d.search"),
    ({"contributes": {"data": {"d": {"version": 1}}}}, "contributes.data.d.version"),
    ({"contributes": {"actions": ["a"]}}, "contributes.actions"),
    ({"contributes": {"commands": [{"name": "c"}]}}, "contributes.commands"),
    ({"contributes": {"services": ["a@1"]}}, "contributes.services"),
    ({"contributes": {"datasets": DATASET}}, "contributes.datasets"),
    ({"contributes": {"extensions": [{"point": "a@1", "id": "a"}]}}, "contributes.extensions"),
    ({"contributes": {"hooks": ["TurnStart"]}}, "contributes.hooks"),
    ({"contributes": {"wires": ["w"]}}, "contributes.wires"),
    ({"contributes": {"forms": [{"id": "f"}]}}, "contributes.forms"),
    ({"contributes": {"ui": {"right": []}}}, "contributes.ui"),
    ({"contributes": {"worldProjections": [{}]}}, "contributes.worldProjections"),
    ({"contributes": {"prompt": [{"id": "a", "content": "x"}]}}, "contributes.prompt"),
]


@pytest.mark.parametrize(("plugin", "path"), REFUSED, ids=[path for _, path in REFUSED])
def test_feature_is_named(plugin: dict[str, Any], path: str) -> None:
    assert named(plugin) == [path]


def test_session_scope_is_named() -> None:
    need = {"contract": "a@1", "scope": "session"}
    found = named(runtime(schedule={"stage": "setup", "needs": [need]}))
    assert found == ["runtime.schedule.needs[0].scope", "runtime.schedule.stage"]


def test_dataset_import_is_named() -> None:
    plugin = {"contributes": {"datasets": DATASET}, **runtime(agent={"tools": {"datasets": ["coins"]}})}
    assert named(plugin) == ["contributes.datasets", "runtime.agent.tools.datasets"]


SUPPORTED: list[dict[str, Any]] = [
    runtime(schedule={"stage": "narrative", "every": 2, "needs": ["a@1"], "after": ["b@1"]}),
    runtime(schedule=MANUAL),
    runtime(schedule={**AUTO, "detached": {"settle": True}}, function={}),
    inputs(**{"from": {"contract": "a@1"}, "select": "/x", "required": False, "accepts": "./s.json"}),
    runtime(
        io={
            "payloadSchema": "./s.json",
            "output": {"contract": "a@1", "schema": "./s.json", "recordAs": "r"},
            "visibility": "story",
        }
    ),
    runtime(
        agent={
            "model": "utility",
            "reasoning": False,
            "finishWith": "plugin-data-set",
            "toolChoice": {"name": "plugin-data-set"},
            "history": {"maxTurns": 0},
            "tools": {"builtin": ["plugin-data-set", "plugin-data-delete"]},
            "loop": {
                "timeoutMs": 1000,
                "idleTimeoutMs": 1,
                "firstTokenTimeoutMs": 1,
                "maxSteps": 2,
                "maxRetries": 0,
                "loopDetection": 0,
                "corrections": {"toolUse": 0, "outputRepair": 2},
            },
        }
    ),
    loop(stream=True),
    runtime(function={"timeoutMs": 5, "model": "memory", "tools": {"builtin": ["plugin-data-get"]}}),
    runtime(effects={"writes": ["state:*"]}, function={}, permissions=HTTP),
    {
        "version": "0.1.0",
        "contributes": {
            "tools": ["t"],
            "data": {"d": {"schema": "./s.json", "authoring": {"title": "Notes"}}},
            "events": [{"topic": "a.b"}],
        },
        "provides": ["b@1"],
        "contracts": {"a@1": {"schema": "./s.json"}},
    },
]


@pytest.mark.parametrize("plugin", SUPPORTED, ids=range(len(SUPPORTED)))
def test_feature_runs(plugin: dict[str, Any]) -> None:
    assert named(plugin) == []
