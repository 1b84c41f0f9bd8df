"""Resolving declared upstreams to the nodes of a turn. Spec: plugin-model §5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from kernel.schedule.nodes import Link
from kernel.schedule.reasons import Diagnostic, Finding
from kernel.wire.nodes import STAGES
from kernel.wire.turn import Edge, RuntimePlan

_RANK = {stage: rank for rank, stage in enumerate(STAGES)}


class LinkResolver:
    """Finds, for every link of a turn, the nodes that can answer it.

    A runtime of a later stage can never unlock an earlier one; manual and event runtimes are not
    part of a turn's stages.

    Args:
        active: every active runtime.
        selected: those of them that this turn runs, by id.
    """

    def __init__(self, active: Sequence[RuntimePlan], selected: Mapping[str, RuntimePlan]) -> None:
        self._selected = selected
        self._ranks = {plan.runtime_id: _RANK[plan.stage] for plan in active if plan.stage}
        self._providers: dict[str, list[str]] = {}
        for plan in active:
            if plan.output and plan.stage:
                self._providers.setdefault(plan.output, []).append(plan.runtime_id)
        for providers in self._providers.values():
            providers.sort()
        self.diagnostics: list[Diagnostic] = []

    def links(self, plan: RuntimePlan) -> tuple[Link, ...]:
        """The links of one runtime, in declaration order."""
        return tuple(self._link(plan, *declared) for declared in _declared(plan))

    def _link(
        self,
        plan: RuntimePlan,
        kind: Literal["needs", "after", "input"],
        name: str,
        edge: Edge,
        hard: bool,
    ) -> Link:
        rank = self._ranks[plan.runtime_id]
        candidates = self._candidates(edge)
        earlier = [c for c in candidates if self._ranks.get(c, rank) <= rank]
        link = Link(
            kind=kind,
            target=edge.contract or edge.runtime or "",
            name=name,
            every=edge.cardinality == "all" and edge.contract is not None,
            hard=hard,
            runtimes=tuple(c for c in earlier if c in self._selected),
            absent=tuple(c for c in earlier if c not in self._selected),
        )
        if hard and candidates and not earlier:
            self._report_later(plan.runtime_id, link, candidates[0])
        return link

    def _candidates(self, edge: Edge) -> Sequence[str]:
        if edge.contract is not None:
            known = self._providers.get(edge.contract, ())
            return [one for one in known if edge.provider in (None, one.partition("/")[0])]
        return (edge.runtime,) if edge.runtime else ()

    def _report_later(self, runtime_id: str, link: Link, provider: str) -> None:
        message = f"{runtime_id}: {link.label} can never be met, {provider} runs in a later stage"
        self.diagnostics.append(Diagnostic(Finding.LATER_STAGE, (runtime_id, provider), message))


def _declared(
    plan: RuntimePlan,
) -> Iterator[tuple[Literal["needs", "after", "input"], str, Edge, bool]]:
    for edge in plan.needs:
        yield "needs", "", edge, True
    for edge in plan.after:
        yield "after", "", edge, False
    for name, binding in plan.inputs.items():
        yield "input", name, binding, binding.required
