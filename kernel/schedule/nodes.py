"""What a planned turn is made of: nodes, the links between them, stages.

Graph      every node in commit order, in stages
Node       one runtime that this turn selected
Link       one declared upstream of a node, resolved to the runtimes that can answer it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kernel.schedule.reach import Reach
from kernel.schedule.reasons import Diagnostic
from kernel.wire.nodes import Stage
from kernel.wire.turn import RuntimePlan


@dataclass(frozen=True, slots=True)
class Link:
    """One declared upstream.

    Attributes:
        kind: where it is declared; `needs` and a required input gate, the others only order.
        name: the input's name, for an input.
        target: the runtime or contract as declared.
        every: every provider must succeed (`cardinality: all`); else one is enough.
        hard: it gates.
        runtimes: nodes of this turn that can answer it, by id; of this stage or an earlier one.
        absent: runtimes that could answer it but do not run in this turn.
    """

    kind: Literal["needs", "after", "input"]
    target: str
    name: str = ""
    every: bool = False
    hard: bool = False
    runtimes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """How a sentence about it begins: `needs a/b`, `input cast (scene-cast@1)`."""
        return f"input {self.name} ({self.target})" if self.kind == "input" else f"{self.kind} {self.target}"


@dataclass(frozen=True, slots=True)
class Node:
    """One runtime of the turn.

    Attributes:
        links: in declaration order: `needs`, `after`, inputs.
        upstreams: the nodes that its links lead to, by id.
        hazards: nodes that it is serialised behind; they order and give no visibility (DECISIONS 4).
        deferrable: detached and eligible: it starts after the commit instead of in the turn.
        blocked: the sentence about the cycle it is in or behind; empty when it is not.
    """

    runtime_id: str
    plan: RuntimePlan
    links: tuple[Link, ...] = ()
    upstreams: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    deferrable: bool = False
    blocked: str = ""

    @property
    def kind(self) -> Literal["agent", "function"]:
        return "agent" if self.plan.agent else "function"


@dataclass(frozen=True, slots=True)
class StageBatch:
    """The nodes of one stage, in commit order. `stage` is None for a manual run."""

    stage: Stage | None
    runtime_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A planned turn.

    Attributes:
        nodes: by runtime id, in commit order: by stage, topological, ties by code point.
        stages: the stages that have nodes, in the order of a turn.
        reach: ancestors along the links.
        edges: (upstream, downstream) of every link, sorted.
        hazards: (first, second) of every pair that is serialised, sorted.
        diagnostics: what a person should know of the plan.
    """

    nodes: Mapping[str, Node]
    stages: tuple[StageBatch, ...]
    reach: Reach = field(default_factory=lambda: Reach((), {}), compare=False, repr=False)
    edges: tuple[tuple[str, str], ...] = ()
    hazards: tuple[tuple[str, str], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def ancestors(self, runtime_id: str) -> tuple[str, ...]:
        """Every node that a path of links leads from to this one: what it may see (DECISIONS 3)."""
        return self.reach.above(runtime_id)
