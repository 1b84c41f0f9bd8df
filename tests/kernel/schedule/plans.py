"""Short ways to write plans."""

from __future__ import annotations

from collections.abc import Iterable

from kernel.schedule.graph import Graph, build
from kernel.schedule.progress import Progress
from kernel.wire.agent import AgentSpec
from kernel.wire.turn import Edge, InputEdge, PlanInput, RunOutcome, RunStatus, RuntimePlan

AGENT = AgentSpec(slot="plugin")


def on(target: str, cardinality: str = "one") -> Edge:
    """A link: a contract when the target ends in `@N`, else a runtime."""
    field = "contract" if "@" in target else "runtime"
    return Edge.model_validate({field: target, "cardinality": cardinality})


def taking(target: str, *, required: bool = True, cardinality: str = "one") -> InputEdge:
    """An input binding."""
    return InputEdge(**on(target, cardinality).model_dump(exclude_unset=True), required=required)


def runtime(runtime_id: str, stage: str | None = "post-turn", **fields: object) -> RuntimePlan:
    """A runtime; `needs` and `after` as strings or edges."""
    for name in ("needs", "after"):
        if name in fields:
            given = fields[name]
            assert isinstance(given, Iterable)
            fields[name] = tuple(on(edge) if isinstance(edge, str) else edge for edge in given)
    if "reads" in fields or "writes" in fields:
        fields.setdefault("declares_effects", True)
    return RuntimePlan.model_validate({"runtime_id": runtime_id, "stage": stage, **fields})


def turn(*runtimes: RuntimePlan, logical_turn: int = 1, manual: str | None = None) -> PlanInput:
    return PlanInput(logical_turn=logical_turn, runtimes=runtimes, manual=manual)


def graph(*runtimes: RuntimePlan, logical_turn: int = 1, manual: str | None = None) -> Graph:
    return build(turn(*runtimes, logical_turn=logical_turn, manual=manual))


def play(plan: Graph, ends: dict[str, RunStatus] | None = None) -> tuple[Progress, list[list[str]]]:
    """Run a plan to its end, settling each wave as a whole; returns the waves of starts too."""
    progress = Progress(plan)
    waves: list[list[str]] = []
    for _ in progress.stages():
        while not progress.stage_done():
            wave = progress.ready()
            assert wave, "nothing runs and the stage is not done"
            waves.append(wave)
            for runtime_id in wave:
                progress.settle(runtime_id, (ends or {}).get(runtime_id, "success"))
    return progress, waves


def statuses(progress: Progress) -> dict[str, str]:
    return {state.runtime_id: state.status for state in progress.nodes}


def outcome(progress: Progress, runtime_id: str) -> RunOutcome:
    return next(run for run in progress.outcomes() if run.runtime_id == runtime_id)
