"""From active packages to what the scheduler and the loop need to know of each runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel.catalog.builtin_tools import BUILTIN_DATA_TOOLS
from kernel.catalog.contracts import borrowed
from kernel.catalog.providers import in_force
from kernel.manifest import Package, Runtime
from kernel.manifest.agent import ForcedTool
from kernel.manifest.fields import ContractReference, RuntimeReference
from kernel.wire.agent import AgentSpec, ToolFacts
from kernel.wire.hooks import HookSubscription
from kernel.wire.turn import DetachedPlan, Edge, InputEdge, PlanInput, RuntimePlan


def plan_input(
    packages: Sequence[Package],
    *,
    logical_turn: int,
    gated: Mapping[str, frozenset[str]],
    bindings: Mapping[str, str],
    choices: Mapping[str, str],
    approval_deadline_ms: int,
    manual: str | None = None,
) -> PlanInput:
    """The planner's view of a generation.

    Args:
        gated: package id → its tools that need approval.
        bindings: slot or runtime id → slot that answers for it.
        choices: contract → package that the session chose for it.
    """
    decided = in_force(packages, choices)
    runtimes = sorted((runtime for package in packages for runtime in package.runtimes), key=lambda r: r.id)
    plans = tuple(
        runtime_plan(
            runtime, gated.get(runtime.package_id, frozenset()), bindings, decided, approval_deadline_ms
        )
        for runtime in runtimes
    )
    hooks = tuple(
        HookSubscription(package_id=package.id, event=hook.event, enforce=hook.enforce)
        for package in packages
        for hook in package.manifest.contributes.hooks
    )
    given = _given(manual=manual, hooks=hooks, borrowed=borrowed(packages))
    return PlanInput(logical_turn=logical_turn, runtimes=plans, **given)


def runtime_plan(
    runtime: Runtime,
    gated: frozenset[str],
    bindings: Mapping[str, str],
    decided: Mapping[str, str],
    approval_deadline_ms: int,
) -> RuntimePlan:
    """One runtime; what stands at its default is not written.

    Args:
        decided: contract → the one of several packages that answers for it.
    """
    manifest = runtime.manifest
    schedule, io, effects = manifest.schedule, manifest.io, manifest.effects
    detached = schedule.detached_limits
    agent = agent_spec(runtime, gated, bindings, approval_deadline_ms) if runtime.kind == "agent" else None
    timeout = manifest.function.timeout_ms if manifest.function else None
    return RuntimePlan(
        runtime_id=runtime.id,
        **_given(
            stage=schedule.stage,
            every=_unless(schedule.every, 1),
            needs=tuple(_edge(need, decided) for need in schedule.needs),
            after=tuple(_edge(upstream, decided) for upstream in schedule.after),
            inputs={name: _input_edge(binding, decided) for name, binding in io.inputs.items()},
            output=io.output.contract,
            exports=_unless(io.output.record_as is not None, False),
            story=_unless(io.visibility == "story", False),
            detached=DetachedPlan(
                settle=detached.settle,
                max_settle_wait_ms=detached.max_settle_wait_ms,
                max_queue_ms=detached.max_queue_ms,
                max_execution_ms=detached.max_execution_ms,
            )
            if detached
            else None,
            reads=effects.reads if effects else (),
            writes=effects.writes if effects else (),
            declares_effects=_unless(effects is not None, False),
            parallel_safe=_unless(bool(effects and effects.parallel_safe), False),
            timeout_ms=timeout,
            agent=agent,
        ),
    )


def agent_spec(
    runtime: Runtime, gated: frozenset[str], bindings: Mapping[str, str], approval_deadline_ms: int
) -> AgentSpec:
    """The loop of an agent runtime, resolved. Spec: plugin-model §11.1."""
    manifest = runtime.manifest
    agent, io, limits = manifest.agent_settings, manifest.io, manifest.loop_limits
    slot = agent.model_slot(io.visibility)
    return AgentSpec(
        slot=bindings.get(runtime.id) or bindings.get(slot) or slot,
        **_given(
            tools={name: _facts(name, gated) for name in tool_names(runtime)},
            tool_choice=_choice(agent.forced_choice),
            finish_with=agent.finish_with,
            story=_unless(io.visibility == "story", False),
            schema_ending=_unless(io.visibility != "story" and runtime.output_schema is not None, False),
            max_steps=_unless(limits.max_steps, 32),
            loop_detection=_unless(limits.loop_detection, 3),
            tool_use_corrections=_unless(limits.corrections.tool_use, 1),
            output_repairs=_unless(limits.corrections.output_repair, 1),
            loop_perturbations=_unless(limits.corrections.loop_perturbation, 1),
            fallback_answers=_unless(limits.fallback == "answer-without-tools", False),
            final_answer=_unless(limits.finalizer.max_steps, True),
            accept_truncated=_unless(limits.truncation == "accept", False),
            timeout_ms=_unless(limits.timeout_ms, 120_000),
            approval_deadline_ms=_unless(approval_deadline_ms, 86_400_000),
        ),
    )


def tool_names(runtime: Runtime) -> tuple[str, ...]:
    """Every tool an agent or function runtime may call, built-in ones first."""
    return (*runtime.builtin_tools, *runtime.plugin_tools)


def _facts(name: str, gated: frozenset[str]) -> ToolFacts:
    if name in BUILTIN_DATA_TOOLS:
        return ToolFacts(builtin=True)
    return ToolFacts(gated=True) if name in gated else ToolFacts()


def _choice(choice: Any) -> str | None:
    return f"={choice.name}" if isinstance(choice, ForcedTool) else choice


def _edge(reference: RuntimeReference | ContractReference, decided: Mapping[str, str]) -> Edge:
    if isinstance(reference, RuntimeReference):
        return Edge(runtime=reference.runtime)
    if reference.cardinality == "all":
        return Edge(contract=reference.contract, cardinality="all")
    return Edge(contract=reference.contract, **_given(provider=decided.get(reference.contract)))


def _input_edge(binding: Any, decided: Mapping[str, str]) -> InputEdge:
    edge = _edge(binding.source, decided)
    return InputEdge(
        **edge.model_dump(exclude_unset=True), **({} if binding.required else {"required": False})
    )


def _unless(value: Any, default: Any) -> Any:
    return None if value == default else value


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that carry something: an unset field costs no byte of history."""
    return {name: value for name, value in fields.items() if value not in (None, (), {}, "")}
