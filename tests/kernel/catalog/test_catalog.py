"""Activation, and what the scheduler and the loop are told of a package."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kernel.catalog import BUILTIN_DATA_TOOLS, activate, builtin_spec, plan_input
from kernel.errors import Code, TurnwrightError
from kernel.manifest import SUPPORTED_BUILTIN_TOOLS, Package, load_package

STORY = (
    "schedule: { stage: narrative }\n  io: { visibility: story, output: { contract: narrative-engine@2 } }"
)
EMPTY = b'{"type": "object"}'


def package(name: str, runtime: str = "", root: str = "", body: str = "Go.", **files: bytes) -> Package:
    inline = f"runtime:\n  {runtime}\n" if runtime else ""
    manifest = f"---\ndescription: x\n{root}{inline}---\n{body}\n".encode()
    loaded = load_package({"PLUGIN.md": manifest, **files}, name=name)
    assert loaded.package is not None, loaded.problems
    return loaded.package


def known(*packages: Package) -> Mapping[str, Package]:
    return {one.id: one for one in packages}


def code(requested: list[str], *packages: Package) -> Code:
    with pytest.raises(TurnwrightError) as refused:
        activate(requested, known(*packages))
    return refused.value.code


def test_active_packages_come_by_id() -> None:
    tale, dice = package("tale", STORY), package("dice")
    assert activate(["tale", "dice", "tale"], known(tale, dice)) == (dice, tale)


def test_an_unknown_package_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TurnwrightError) as refused:
        activate(["nope"], known(package("tale", STORY)))
    assert (refused.value.code, refused.value.accepted) == (Code.PACKAGE_UNKNOWN, "tale")


def test_a_required_contract_needs_an_active_provider() -> None:
    needy = package("needy", root="requires: [narrative-engine@2]\n")
    assert code(["needy"], needy, package("tale", STORY)) == Code.ACTIVATION_MISSING_PROVIDER
    assert len(activate(["needy", "tale"], known(needy, package("tale", STORY)))) == 2


def test_two_stories_conflicts_and_topics_are_refused() -> None:
    one, two = package("one", STORY), package("two", STORY)
    assert code(["one", "two"], one, two) == Code.ACTIVATION_TWO_STORIES
    rival = package("rival", root="conflicts: [one]\n")
    assert code(["one", "rival"], one, rival) == Code.ACTIVATION_CONFLICT
    topic = "contributes:\n  events: [{ topic: bell.rang, description: x }]\n"
    assert code(["a", "b"], package("a", root=topic), package("b", root=topic)) == Code.ACTIVATION_EVENT_TOPIC


def test_several_providers_of_a_required_input_are_refused() -> None:
    handler = {"handler.py": b"async def handler(ctx): ...\n"}
    gives = "schedule: { stage: pre-turn }\n  io: { output: { contract: a.b@1 } }\n  function: {}"
    bound = "{ inputs: { x: { from: { contract: a.b@1 }%s } } }"
    takes = f"schedule: {{ stage: post-turn }}\n  function: {{}}\n  io: {bound}"
    one, two = package("one", gives, **handler), package("two", gives, **handler)
    needy, easy = (
        package("needy", takes % "", **handler),
        package("easy", takes % ", required: false", **handler),
    )
    assert code(["one", "two", "needy"], one, two, needy) == Code.ACTIVATION_AMBIGUOUS_PROVIDER
    assert len(activate(["one", "needy"], known(one, needy))) == 2
    assert len(activate(["one", "two", "easy"], known(one, two, easy))) == 3


def test_what_this_version_does_not_run_is_refused_by_name() -> None:
    late = package("late", "schedule: { stage: setup }")
    with pytest.raises(TurnwrightError) as refused:
        activate(["late"], known(late))
    assert refused.value.code == Code.PACKAGE_UNSUPPORTED
    assert "late" in str(refused.value)
    templated = package("words", STORY, body="Use {{ world.lore }}.")
    assert code(["words"], templated) == Code.PACKAGE_UNSUPPORTED


def test_every_problem_is_in_the_message() -> None:
    needy = package("needy", root="requires: [x.y@1, x.z@1]\n")
    with pytest.raises(TurnwrightError) as refused:
        activate(["needy"], known(needy))
    assert "x.y@1" in refused.value.message
    assert "x.z@1" in refused.value.message


def test_a_plan_writes_only_what_differs_from_the_default() -> None:
    plan = plan_input(
        [package("tale", STORY)], logical_turn=1, gated={}, bindings={}, approval_deadline_ms=86_400_000
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
    made = package("made", runtime, **{"handler.py": b"async def handler(ctx): ...\n"})
    plan = plan_input([made], logical_turn=1, gated={}, bindings={}, approval_deadline_ms=1).runtimes[0]
    assert plan.needs[0].contract == "a.b@1"
    assert plan.after[0].cardinality == "all"
    assert not plan.inputs["s"].required
    assert (plan.every, plan.timeout_ms, plan.parallel_safe, plan.declares_effects) == (2, 5_000, True, True)
    assert plan.detached is not None
    assert plan.detached.settle


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
