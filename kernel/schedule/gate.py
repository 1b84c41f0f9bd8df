"""Whether a node may start. Spec: plugin-model §5.

`needs` and required inputs gate; `after` and optional inputs only order. The verdict waits until every
upstream has settled, so that it never depends on who happened to finish first (DECISIONS 3).

How several upstreams join:

    one of a contract      any provider's success
    all of a contract      every provider's success
    several links          every hard link, each on its own
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernel.schedule.nodes import Link, Node
from kernel.schedule.reasons import SkipReason
from kernel.wire.turn import RunStatus

Upstream = Mapping[str, RunStatus | None]
"""How nodes ended; None, or left out, while unsettled."""


@dataclass(frozen=True, slots=True)
class Wait:
    """These upstreams have not settled."""

    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skip:
    """A gate will not open: the first one, in declaration order."""

    reason: SkipReason
    message: str


@dataclass(frozen=True, slots=True)
class Run:
    """Every gate is open. `upstream`: the successes that the run may read, by id."""

    upstream: tuple[str, ...]


def gate(node: Node, upstream: Upstream) -> Wait | Skip | Run:
    """Decide whether a node may start.

    Args:
        node: a planned node.
        upstream: the end states of its ancestors and of its hazards.
    """
    if node.blocked:
        return Skip(SkipReason.DEPENDENCY_CYCLE, node.blocked)
    unsettled = tuple(up for up in (*node.upstreams, *node.hazards) if upstream.get(up) is None)
    if unsettled:
        return Wait(unsettled)
    for link in node.links:
        if link.hard and not satisfied(link, upstream):
            return _skip(link, upstream)
    return Run(tuple(sorted(up for up in upstream if upstream[up] == "success" and up not in node.hazards)))


def satisfied(link: Link, upstream: Upstream) -> bool:
    """Whether enough runtimes of a link succeeded; no runtime at all is never enough."""
    successes = [runtime for runtime in link.runtimes if upstream.get(runtime) == "success"]
    if link.every:
        return bool(successes) and len(successes) == len(link.runtimes) and not link.absent
    return bool(successes)


def _skip(link: Link, upstream: Upstream) -> Skip:
    reason = SkipReason.INPUT_MISSING if link.kind == "input" else SkipReason.UPSTREAM_NOT_SUCCESS
    return Skip(reason, f"{link.label}: {_explain(link, upstream)}")


def _explain(link: Link, upstream: Upstream) -> str:
    if not link.runtimes and not link.absent:
        return "nothing that is active in this turn provides it"
    ended = [f"{r} {_ENDED[upstream.get(r)]}" for r in link.runtimes if upstream.get(r) != "success"]
    ended += [f"{runtime} does not run in this turn" for runtime in link.absent]
    return ", ".join(ended)


_ENDED: Mapping[RunStatus | None, str] = {
    "failed": "failed",
    "skipped": "was skipped",
    "suspended": "is suspended",
    None: "did not run",
}
