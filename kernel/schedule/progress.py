"""A planned turn while it runs: who may start, who settled how, what follows from it.

    for stage in progress.stages():
        while not progress.stage_done():
            start(progress.ready()); … progress.settle(…)

Spec: plugin-model §3, step 7 (strict barrier between stages); DECISIONS 3 (a node starts when its own
gates open).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kernel.errors import Code, TurnwrightError
from kernel.schedule.gate import Run, Skip, Wait, gate
from kernel.schedule.nodes import Graph, StageBatch
from kernel.schedule.reasons import SkipReason
from kernel.wire import budgets
from kernel.wire.base import outline
from kernel.wire.nodes import NodeState
from kernel.wire.turn import RunOutcome, RunStatus
from kernel.wire.usage import UsageTotals

_SETTLED: dict[str, RunStatus] = {
    "success": "success",
    "skipped": "skipped",
    "suspended": "suspended",
    "failed": "failed",
}


class Progress:
    """The state of every node of a turn. Pure: time comes in as an argument, where people want to see it.

    Raises:
        TurnwrightError: `internal`, when a call does not fit the state.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._states = {
            node.runtime_id: NodeState(runtime_id=node.runtime_id, stage=node.plan.stage, kind=node.kind)
            for node in graph.nodes.values()
        }
        self._stage: StageBatch | None = None
        self._open = 0
        self._ready: list[str] = []
        self._settled: deque[str] = deque()
        self._successes = 0
        self._upstream: dict[str, tuple[str, ...]] = {}
        self._behind: dict[str, list[str]] = {}
        for first, second in self.edges:
            self._behind.setdefault(first, []).append(second)
        self._missing = {
            node.runtime_id: len(node.upstreams) + len(node.hazards) for node in graph.nodes.values()
        }

    def stages(self) -> Iterator[StageBatch]:
        """Enter stage after stage; the next one only when this one is done, or the turn is closed."""
        for stage in self.graph.stages:
            if not self.stage_done():
                raise TurnwrightError(Code.INTERNAL, "a stage was left before it was done")
            self._stage = stage
            self._open = sum(not self._ended(node) for node in stage.runtime_ids)
            for node in stage.runtime_ids:
                self._weigh(node)
            self._spread()
            yield stage

    def stage_done(self) -> bool:
        """Whether every node of the current stage has settled or is deferred."""
        return self._open == 0

    def ready(self, *, at: float | None = None) -> list[str]:
        """The nodes to start now, by code point; from here on they count as running.

        Args:
            at: Unix seconds of the start.
        """
        starting = sorted(self._ready)
        self._ready = []
        for node in starting:
            self._update(node, status="running", started_at=at)
        return starting

    def upstream(self, runtime_id: str) -> tuple[str, ...]:
        """The runtimes whose success a started or deferred node may read, by id (DECISIONS 3)."""
        return self._upstream.get(runtime_id, ())

    def settle(
        self,
        runtime_id: str,
        status: RunStatus,
        reason: str = "",
        message: str = "",
        *,
        usage: UsageTotals | None = None,
        at: float | None = None,
    ) -> None:
        """Record how a running node ended; what can only be skipped now is skipped at once.

        Args:
            reason: an error code or a `SkipReason`.
            at: Unix seconds of the end.
        """
        if self._states[runtime_id].status != "running":
            raise TurnwrightError(Code.INTERNAL, f"{runtime_id} settled without running")
        self._update(runtime_id, usage=usage or UsageTotals(), ended_at=at)
        self._end(runtime_id, status, reason, message)
        self._spread()

    def close(self, reason: SkipReason = SkipReason.TURN_STOPPED, message: str = "") -> None:
        """End the turn here: every node that has no end state is skipped, the running ones too."""
        for node in self.graph.nodes:
            if not self._ended(node):
                self._update(node, status="skipped", reason=str(reason), message=outline(message))
        self._ready = []
        self._open = 0

    def outcomes(self) -> tuple[RunOutcome, ...]:
        """The settled nodes in commit order: by stage, topological, ties by code point."""
        return budgets.outcomes(
            RunOutcome(
                runtime_id=state.runtime_id,
                status=_SETTLED[state.status],
                **{name: text for name in ("reason", "message") if (text := getattr(state, name))},
            )
            for state in self.nodes
            if state.status in _SETTLED
        )

    @property
    def deferred(self) -> tuple[str, ...]:
        """The detached nodes that start after the commit, in commit order."""
        return tuple(state.runtime_id for state in self.nodes if state.status == "deferred")

    @property
    def running(self) -> tuple[str, ...]:
        """The nodes that were started and have not settled, in commit order."""
        return tuple(state.runtime_id for state in self.nodes if state.status == "running")

    @property
    def nodes(self) -> tuple[NodeState, ...]:
        """Every node as people see it, in commit order."""
        return tuple(self._states.values())

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(upstream, downstream) of every link and every hazard, sorted."""
        return tuple(sorted((*self.graph.edges, *self.graph.hazards)))

    def _weigh(self, node: str) -> None:
        """Ask the gate of a node of the current stage whose upstreams have all settled."""
        planned = self.graph.nodes[node]
        if self._states[node].status != "waiting" or (self._missing[node] and not planned.blocked):
            return
        visible = self.graph.reach.above(node, self._successes)
        upstream: dict[str, RunStatus | None] = dict.fromkeys(visible, "success")
        for other in (*planned.upstreams, *planned.hazards):
            upstream[other] = _SETTLED.get(self._states[other].status)
        match gate(planned, upstream):
            case Skip(reason, message):
                self._end(node, "skipped", reason, message)
            case Run(readable) if planned.deferrable:
                self._upstream[node] = readable
                self._update(node, status="deferred")
                self._open -= 1
            case Run(readable):
                self._upstream[node] = readable
                self._ready.append(node)
            case Wait(on):
                raise TurnwrightError(Code.INTERNAL, f"{node} waits for {on[0]}, which never runs")

    def _end(self, node: str, status: RunStatus, reason: str, message: str) -> None:
        self._update(node, status=status, reason=str(reason), message=outline(message))
        self._open -= 1
        self._settled.append(node)
        if status == "success":
            self._successes |= self.graph.reach.bits.get(node, 0)

    def _spread(self) -> None:
        """Weigh what waited for the settled nodes; a loop, for a chain of skips may be long."""
        while self._settled:
            for behind in self._behind.get(self._settled.popleft(), ()):
                self._missing[behind] -= 1
                if self._stage and self.graph.nodes[behind].plan.stage == self._stage.stage:
                    self._weigh(behind)

    def _ended(self, node: str) -> bool:
        return self._states[node].status in _SETTLED or self._states[node].status == "deferred"

    def _update(self, node: str, **changes: object) -> None:
        self._states[node] = self._states[node].model_copy(update=changes)
