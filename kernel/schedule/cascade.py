"""What else a commit drops when it drops a runtime. Spec: plugin-model §20, step 4."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kernel.schedule.gate import satisfied
from kernel.schedule.nodes import Graph, Link, Node
from kernel.schedule.reasons import SkipReason
from kernel.wire.turn import RunOutcome, RunStatus


@dataclass(frozen=True, slots=True)
class Drop:
    """A runtime whose success does not count, because a hard upstream's does not."""

    runtime_id: str
    reason: SkipReason
    message: str


@dataclass(frozen=True, slots=True)
class Cascade:
    """The consequences of some drops.

    Attributes:
        drops: the dependants, in commit order; the runtimes dropped first are not repeated.
        rejects: a story or setup runtime among them: the whole turn rolls back.
    """

    drops: tuple[Drop, ...]
    rejects: Drop | None = None


def cascade(
    graph: Graph,
    outcomes: Iterable[RunOutcome],
    dropped: Collection[str],
    deferred: Collection[str] = (),
) -> Cascade:
    """Find the hard dependants of dropped runtimes.

    `after` and optional inputs do not cascade; one of a contract stays satisfied by another committed
    provider.

    Args:
        graph: the turn's plan.
        outcomes: how the runs ended, before any drop.
        dropped: runtimes whose proposals were refused, with those that have none of their own.
        deferred: detached runtimes; one that depends on a dropped runtime is not started.
    """
    standing: dict[str, RunStatus | None] = {run.runtime_id: run.status for run in outcomes}
    standing.update((runtime_id, "failed") for runtime_id in sorted(dropped))
    drops: list[Drop] = []
    rejects: Drop | None = None
    for node in graph.nodes.values():
        counts = standing.get(node.runtime_id) == "success" or node.runtime_id in deferred
        lost = _lost(node, standing) if counts else None
        if lost is None:
            continue
        drop = Drop(node.runtime_id, SkipReason.UPSTREAM_DROPPED, f"{lost.label} was dropped at commit")
        drops.append(drop)
        standing[node.runtime_id] = "failed"
        if rejects is None and (node.plan.story or node.plan.stage == "setup"):
            rejects = drop
    return Cascade(tuple(drops), rejects)


def _lost(node: Node, standing: Mapping[str, RunStatus | None]) -> Link | None:
    """The first hard link that no longer holds. A manual run has passed its gates, it loses none."""
    return next((link for link in node.links if link.hard and not satisfied(link, standing)), None)
