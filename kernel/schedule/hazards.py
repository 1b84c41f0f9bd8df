"""Nodes of one stage whose declared effects meet run one after the other. Spec: plugin-model §6; DECISIONS 4.

An effect that ends in `*` stands for everything that starts like it; `unknown:*` stands for everything.
`plugin-data:self:<namespace>` belongs to its package. A node that declares nothing is never held back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from kernel.schedule.reach import Reach
from kernel.schedule.reasons import Diagnostic, Finding
from kernel.wire.turn import RuntimePlan

_SELF = "plugin-data:self:"


def serialise(stage: Sequence[RuntimePlan], reach: Reach) -> Iterator[tuple[str, str, Diagnostic]]:
    """Pairs to run one after the other, in code-point order where no path orders them already.

    Args:
        stage: the nodes of one stage.
        reach: paths of this stage; grows by every pair that comes out.
    """
    declaring = {plan.runtime_id: plan for plan in stage if plan.declares_effects}
    effects = _Effects(declaring, reach)
    for node in sorted(declaring):
        smaller = reach.bits[node] - 1
        for first in reach.connect_behind(node, effects.meeting(node) & smaller):
            yield first, node, _diagnostic(first, node, effects.shared(first, node))


class _Effects:
    """Who writes and who touches (reads or writes) what, as sets of nodes."""

    def __init__(self, plans: dict[str, RuntimePlan], reach: Reach) -> None:
        self._writes = {node: _owned(node, plan.writes) for node, plan in plans.items()}
        self._touches = {node: _owned(node, (*plan.reads, *plan.writes)) for node, plan in plans.items()}
        self._safe = sum(reach.bits[node] for node, plan in plans.items() if plan.parallel_safe)
        self._bits = reach.bits
        writers, touchers = self._by_effect(self._writes), self._by_effect(self._touches)
        # For each effect: the writers, and the touchers, of every effect that it meets.
        self._met_writers = dict.fromkeys(touchers, 0)
        self._met_touchers = dict.fromkeys(touchers, 0)
        texts = sorted(touchers)
        for one in texts:
            for other in _meeting(one, texts):
                for effect, met in ((one, other), (other, one)):
                    self._met_writers[effect] |= writers.get(met, 0)
                    self._met_touchers[effect] |= touchers[met]

    def _by_effect(self, effects: dict[str, list[str]]) -> dict[str, int]:
        nodes: dict[str, int] = {}
        for node, texts in effects.items():
            for text in texts:
                nodes[text] = nodes.get(text, 0) | self._bits[node]
        return nodes

    def meeting(self, node: str) -> int:
        """The nodes that may not run at the same time as this one."""
        met = 0
        for effect in self._writes[node]:
            met |= self._met_touchers[effect]
        for effect in self._touches[node]:
            met |= self._met_writers[effect]
        return met & ~self._safe if self._safe & self._bits[node] else met

    def shared(self, one: str, other: str) -> str:
        """The first effect of `one` over which the two meet."""
        sides = (
            (self._writes[one], self._touches[other]),
            (self._touches[one], self._writes[other]),
        )
        return next(
            effect
            for mine, theirs in sides
            for effect in mine
            if any(_meet(effect, other_effect) for other_effect in theirs)
        )


def _owned(node: str, effects: Sequence[str]) -> list[str]:
    """The effects by code point, with the own package named."""
    package = node.split("/", 1)[0]
    own = f"plugin-data:{package}:"
    return sorted({own + e.removeprefix(_SELF) if e.startswith(_SELF) else e for e in effects})


def _meeting(effect: str, texts: Sequence[str]) -> Iterator[str]:
    """The effects that meet this one: itself, and for a wildcard all that start like it."""
    if not effect.endswith("*"):
        yield effect
        return
    prefix = _prefix(effect)
    for text in texts[bisect_left(texts, prefix) :]:
        if not text.startswith(prefix):
            return
        yield text


def _meet(one: str, other: str) -> bool:
    if one == other:
        return True
    return any(
        wide.endswith("*") and text.startswith(_prefix(wide)) for wide, text in ((one, other), (other, one))
    )


def _prefix(wildcard: str) -> str:
    return "" if wildcard == "unknown:*" else wildcard[:-1]


def _diagnostic(first: str, second: str, effect: str) -> Diagnostic:
    message = (
        f"{second} runs after {first}: both touch {effect} and nothing orders them "
        "(order them, or declare parallelSafe on both)"
    )
    return Diagnostic(Finding.HAZARD, (first, second), message)
