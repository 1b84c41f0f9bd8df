"""What the scheduler and the loop are told of a package."""

from __future__ import annotations

import pytest

from kernel.catalog import BUILTIN_DATA_TOOLS, builtin_spec, plan_input
from kernel.manifest import SUPPORTED_BUILTIN_TOOLS
from tests.kernel.catalog.packages import EMPTY, HANDLER, STORY, package


def test_a_plan_writes_only_what_differs_from_the_default() -> None:
    plan = plan_input(
        [package("tale", STORY)],
        logical_turn=1,
        gated={},
        bindings={},
        choices={},
        approval_deadline_ms=86_400_000,
    )
    assert plan.model_dump(mode="json", exclude_unset=True) == {
        "logical_turn": 1,
        "runtimes": [
            {
                "runtime_id": "tale",
                "stage": "narrative",
                "output": "narrative-engine@2",
                "story": True,
                "agent": {
                    "slot": "story",
                    "story": True,
                    "fallback_answers": True,
                    "accept_truncated": True,
                    "timeout_ms": 240_000,
                },
            }
        ],
    }


def test_a_plan_follows_bindings_gates_and_manual_runs() -> None:
    tools = "contributes:\n  tools: [mark]\n"
    tale = package("tale", STORY, root=tools, **{"server/__init__.py": b"def register(host): ...\n"})
    plan = plan_input(
        [tale],
        logical_turn=2,
        gated={"tale": frozenset({"mark"})},
        bindings={"story": "big"},
        choices={},
        approval_deadline_ms=5_000,
        manual="tale",
    )
    agent = plan.runtimes[0].agent
    assert agent is not None
    assert (plan.manual, agent.slot, agent.approval_deadline_ms) == ("tale", "big", 5_000)
    assert agent.tools["mark"].gated


def test_a_function_plan_has_edges_effects_and_times() -> None:
    runtime = (
        "schedule: { stage: post-turn, every: 2, needs: [a.b@1],"
        " after: [{ contract: c.d@1, cardinality: all }], detached: { settle: true } }\n"
        "  io: { inputs: { s: { from: { contract: narrative-engine@2 }, select: /segments,"
        " required: false } } }\n"
        "  function: { timeoutMs: 5000 }\n"
        "  effects: { reads: ['state:*'], writes: ['plugin-data:self:n'], parallelSafe: true }"
    )
    made = package("made", runtime, **HANDLER)
    plan = plan_input(
        [made], logical_turn=1, gated={}, bindings={}, choices={}, approval_deadline_ms=1
    ).runtimes[0]
    assert plan.needs[0].contract == "a.b@1"
    assert plan.after[0].cardinality == "all"
    assert not plan.inputs["s"].required
    assert (plan.every, plan.timeout_ms, plan.parallel_safe, plan.declares_effects) == (2, 5_000, True, True)
    assert plan.detached is not None
    assert plan.detached.settle


def test_a_link_to_one_provider_names_the_chosen_package() -> None:
    gives = "schedule: { stage: pre-turn }\n  io: { output: { contract: a.b@1 } }\n  function: {}"
    takes = (
        "schedule: { stage: post-turn, needs: [a.b@1], after: [{ contract: a.b@1, cardinality: all }] }\n"
        "  function: {}\n  io: { inputs: { x: { from: { contract: a.b@1 } } } }"
    )
    packages = [package(name, gives, **HANDLER) for name in ("one", "two")]
    packages.append(package("takes", takes, **HANDLER))
    choices = {"a.b@1": "two", "c.d@1": "one"}
    plan = plan_input(
        packages, logical_turn=1, gated={}, bindings={}, choices=choices, approval_deadline_ms=1
    )
    runtime = plan.runtimes[1]
    assert runtime.runtime_id == "takes"
    assert runtime.needs[0].provider == "two"
    assert runtime.after[0].provider is None
    assert runtime.inputs["x"].provider == "two"


def test_the_data_tools_are_shaped_by_the_package() -> None:
    root = "contributes:\n  data:\n    notes: { schema: ./n.json }\n"
    typed = package("typed", root=root, **{"n.json": b'{"type": "object", "required": ["text"]}'})
    spec = builtin_spec("plugin-data-set", typed)
    assert spec.parameters["properties"]["namespace"] == {"type": "string", "enum": ["notes"]}
    assert spec.parameters["properties"]["value"]["required"] == ["text"]
    two = root + "    other: { schema: ./o.json }\n"
    both = package(
        "both", root=two, **{"n.json": EMPTY, "o.json": b'{"$defs": {"a": {}}, "$ref": "#/$defs/a"}'}
    )
    assert builtin_spec("plugin-data-set", both).parameters["properties"]["value"] == {}
    pair = package("pair", root=two, **{"n.json": EMPTY, "o.json": EMPTY})
    assert len(builtin_spec("plugin-data-set", pair).parameters["properties"]["value"]["anyOf"]) == 2
    free = builtin_spec("plugin-data-get", package("free"))
    assert free.parameters["properties"]["namespace"] == {"type": "string", "minLength": 1}


@pytest.mark.parametrize("name", BUILTIN_DATA_TOOLS)
def test_every_data_tool_has_a_closed_object_schema(name: str) -> None:
    spec = builtin_spec(name, package("free"))
    assert spec.description
    assert spec.parameters["additionalProperties"] is False


def test_the_supported_tools_are_the_ones_that_run() -> None:
    assert set(SUPPORTED_BUILTIN_TOOLS) == set(BUILTIN_DATA_TOOLS)
