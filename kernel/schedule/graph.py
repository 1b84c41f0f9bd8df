"""Planning a turn: which runtimes run, in which stages, and what each waits for.

Spec: plugin-model §4 (selection), §5 (graph), §6 (hazards), §18 (detached); DECISIONS 2 to 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel.errors import Code, TurnwrightError
from kernel.schedule.cycles import blocked, drop_alternatives, successors
from kernel.schedule.detached import objection
from kernel.schedule.hazards import serialise
from kernel.schedule.links import LinkResolver
from kernel.schedule.nodes import Graph, Link, Node, StageBatch
from kernel.schedule.order import topological
from kernel.schedule.reach import Reach
from kernel.schedule.reasons import Diagnostic, Finding
from kernel.wire.nodes import STAGES, Stage
from kernel.wire.turn import PlanInput, RuntimePlan

__all__ = ["Graph", "Link", "Node", "StageBatch", "build"]


def build(plan: PlanInput) -> Graph:
    """Plan one turn. The order of `plan.runtimes` does not matter.

    Raises:
        TurnwrightError: `activation.two-stories`; `runtime.unknown`, `runtime.not-manual` for a manual run.
    """
    _refuse_two_stories(plan.runtimes)
    if plan.manual is not None:
        return _manual(plan, plan.manual)
    return _Planner(plan).graph()


def _refuse_two_stories(runtimes: Sequence[RuntimePlan]) -> None:
    stories = sorted(plan.runtime_id for plan in runtimes if plan.story)
    if len(stories) > 1:
        raise TurnwrightError(
            Code.ACTIVATION_TWO_STORIES,
            f"two story runtimes are active: {stories[0]} and {stories[1]}",
            accepted="one runtime with visibility story; deactivate the other package",
        )


def _manual(plan: PlanInput, runtime_id: str) -> Graph:
    """A manual request is matched by id alone and passes every gate. Spec: plugin-model §4."""
    for runtime in plan.runtimes:
        if runtime.runtime_id == runtime_id:
            if runtime.stage is not None:
                message = f"{runtime_id} runs by itself in the stage {runtime.stage}"
                raise TurnwrightError(Code.RUNTIME_NOT_MANUAL, message, accepted=_manual_ids(plan))
            node = Node(runtime_id, runtime)
            return Graph({runtime_id: node}, (StageBatch(runtime.stage, (runtime_id,)),))
    message = f"no active runtime is called {runtime_id}"
    raise TurnwrightError(Code.RUNTIME_UNKNOWN, message, accepted=_manual_ids(plan))


def _manual_ids(plan: PlanInput) -> str:
    manual = sorted(runtime.runtime_id for runtime in plan.runtimes if runtime.stage is None)
    return ", ".join(manual) or "none: no active runtime is manual"


class _Planner:
    def __init__(self, plan: PlanInput) -> None:
        chosen = [p for p in plan.runtimes if p.stage is not None and plan.logical_turn % p.every == 0]
        self._plans = {p.runtime_id: p for p in sorted(chosen, key=lambda p: p.runtime_id)}
        self._stages = _by_stage(self._plans)
        resolver = LinkResolver(plan.runtimes, self._plans)
        self._links = {runtime_id: resolver.links(p) for runtime_id, p in self._plans.items()}
        self._diagnostics = resolver.diagnostics
        self._blocked: dict[str, str] = {}
        self._hazards: list[tuple[str, str]] = []

    def graph(self) -> Graph:
        for _, stage in self._stages:
            self._settle_cycles(stage)
        upstreams = {node: _upstreams(links) for node, links in self._links.items()}
        deferrable = self._deferrable(upstreams)
        for _, stage in self._stages:
            foreground = [node for node in stage if node not in deferrable and node not in self._blocked]
            self._serialise(foreground, upstreams)
        stages = tuple(StageBatch(stage, tuple(self._commit_order(ids))) for stage, ids in self._stages)
        order = [node for stage in stages for node in stage.runtime_ids]
        before = _gather(self._hazards)
        nodes = {
            node: Node(
                runtime_id=node,
                plan=self._plans[node],
                links=self._links[node],
                upstreams=upstreams[node],
                hazards=before.get(node, ()),
                deferrable=node in deferrable,
                blocked=self._blocked.get(node, ""),
            )
            for node in order
        }
        return Graph(
            nodes=nodes,
            stages=stages,
            reach=Reach(order, upstreams),
            edges=tuple(sorted((up, node) for node in order for up in upstreams[node])),
            hazards=tuple(sorted(self._hazards)),
            diagnostics=tuple(self._diagnostics),
        )

    def _settle_cycles(self, stage: Sequence[str]) -> None:
        if not topological(stage, successors(stage, self._links))[1]:
            return
        changed, dropped = drop_alternatives(stage, self._links)
        self._links.update(changed)
        messages, found = blocked(stage, self._links)
        self._blocked.update(messages)
        self._diagnostics += [*dropped, *found]

    def _deferrable(self, upstreams: Mapping[str, Sequence[str]]) -> set[str]:
        """The detached nodes that may start after the commit; a diagnostic for each that may not."""
        waiting = {up: node for node in sorted(upstreams, reverse=True) for up in upstreams[node]}
        leaving: set[str] = set()
        for node, plan in self._plans.items():
            if plan.detached is None:
                continue
            why = objection(
                agent=plan.agent is not None,
                stage=plan.stage,
                exports=plan.exports,
                writes=plan.writes if plan.declares_effects else None,
                waited_for_by=waiting.get(node),
            )
            if why is None:
                leaving.add(node)
            else:
                message = f"{node} stays in the turn although it is detached: {why}"
                self._diagnostics.append(Diagnostic(Finding.NOT_DETACHED, (node,), message))
        return leaving

    def _serialise(self, stage: Sequence[str], upstreams: Mapping[str, Sequence[str]]) -> None:
        if not any(self._plans[node].declares_effects for node in stage):
            return
        order, _ = topological(stage, successors(stage, self._links))
        plans = [self._plans[node] for node in stage]
        for first, second, diagnostic in serialise(plans, Reach(order, upstreams)):
            self._hazards.append((first, second))
            self._diagnostics.append(diagnostic)

    def _commit_order(self, stage: Sequence[str]) -> list[str]:
        following = successors(stage, self._links)
        for first, second in self._hazards:
            following.setdefault(first, []).append(second)
        order, stuck = topological(stage, following)
        return order + stuck


def _by_stage(plans: Mapping[str, RuntimePlan]) -> list[tuple[Stage, list[str]]]:
    batches = [(stage, [node for node, plan in plans.items() if plan.stage == stage]) for stage in STAGES]
    return [(stage, nodes) for stage, nodes in batches if nodes]


def _upstreams(links: Sequence[Link]) -> tuple[str, ...]:
    return tuple(sorted({runtime for link in links for runtime in link.runtimes}))


def _gather(pairs: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    before: dict[str, tuple[str, ...]] = {}
    for first, second in sorted(pairs):
        before[second] = (*before.get(second, ()), first)
    return before
