"""Payloads of the `Turn` and `Job` workflows and their activities."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernel.wire.agent import AgentSpec
from kernel.wire.base import Json, Outline, Wire
from kernel.wire.failure import Failure
from kernel.wire.hooks import HookSubscription
from kernel.wire.nodes import NodeState, Stage
from kernel.wire.usage import UsageTotals

Origin = Literal["player", "continuation", "manual", "background", "recursive", "resume"]
TurnStatus = Literal["committed", "rejected", "stopped"]
Cardinality = Literal["one", "all"]
RunStatus = Literal["success", "skipped", "suspended", "failed"]


class TurnInput(Wire):
    """Starts a turn: ids only, the rest is read from the store.

    `incarnation` binds the turn to one life of its session: a turn of an earlier life cannot commit.
    """

    session_id: str
    turn_id: str
    incarnation: str
    origin: Origin = "player"


class Edge(Wire):
    """One upstream of a runtime: a runtime of its own package, or a contract.

    Attributes:
        provider: the package that answers for the contract, where several could and one was decided on.
    """

    runtime: str | None = None
    contract: str | None = None
    cardinality: Cardinality = "one"
    provider: str | None = None


class InputEdge(Edge):
    """A turn-scoped input binding, as far as order and gates go."""

    required: bool = True


class DetachedPlan(Wire):
    """Options of a detached runtime, in milliseconds."""

    settle: bool = False
    max_settle_wait_ms: int = 30_000
    max_queue_ms: int = 300_000
    max_execution_ms: int = 120_000


class RuntimePlan(Wire):
    """What the scheduler needs to know of one active runtime; defaults are not written.

    Attributes:
        stage: None for a manual or event runtime.
        output: contract that its output publishes.
        exports: its output is recorded for later executions (`recordAs`).
        declares_effects: it has an `effects` block, even an empty one.
    """

    runtime_id: str
    stage: Stage | None = None
    every: int = 1
    needs: tuple[Edge, ...] = ()
    after: tuple[Edge, ...] = ()
    inputs: dict[str, InputEdge] = Field(default_factory=dict)
    output: str | None = None
    exports: bool = False
    story: bool = False
    detached: DetachedPlan | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    declares_effects: bool = False
    parallel_safe: bool = False
    timeout_ms: int = 120_000
    agent: AgentSpec | None = None


class PlanInput(Wire):
    """The frozen generation, as the planner reads it.

    Attributes:
        logical_turn: committed player turns + 1.
        runtimes: every active runtime, by id.
        manual: the runtime that a `run` asked for; the plan is then this one node.
        hooks: who listens to the turn's moments, as registered.
        borrowed: contract → package that publishes its schema, where a runtime's own package does not.
    """

    logical_turn: int
    runtimes: tuple[RuntimePlan, ...] = ()
    manual: str | None = None
    hooks: tuple[HookSubscription, ...] = ()
    borrowed: dict[str, str] = Field(default_factory=dict)


class Story(Wire):
    """The committed story: whole up to 8 KiB, else an outline and where the rest is.

    Attributes:
        message_id: of a story that is not complete here: its position in the session's conversation.
    """

    runtime_id: str
    text: str
    complete: bool = True
    message_id: str | None = None


class CommittedCounts(Wire):
    """How much a commit changed."""

    messages: int = 0
    data: int = 0
    state: int = 0
    events: int = 0
    exports: int = 0


class RunOutcome(Wire):
    """How one run ended, as the receipt lists it."""

    runtime_id: str
    status: RunStatus
    reason: str = ""
    message: Outline = ""


class JobRef(Wire):
    """A detached run that a committed turn left to do. Times in milliseconds."""

    job_id: str
    turn_id: str
    runtime_id: str
    settle: bool = False
    max_settle_wait_ms: int = 30_000
    max_queue_ms: int = 300_000
    max_execution_ms: int = 120_000


class TurnResult(Wire):
    """The end of a turn: the result of the `Turn` workflow, and the receipt in the store.

    Attributes:
        status: committed, rejected (nothing changed) or stopped (a person's stop; nothing changed).
        reason: code of a rejection.
        story: the story text, when one was committed.
        runs: every runtime of the turn that settled, by id.
        jobs: detached runs that start now.
    """

    session_id: str
    turn_id: str
    status: TurnStatus
    logical_turn: int = 0
    completed_player_turns: int = 0
    reason: str = ""
    message: Outline = ""
    story: Story | None = None
    output: Json = None
    runs: tuple[RunOutcome, ...] = ()
    committed: CommittedCounts = Field(default_factory=CommittedCounts)
    jobs: tuple[JobRef, ...] = ()
    usage: UsageTotals = Field(default_factory=UsageTotals)


class OpenedTurn(Wire):
    """Answer of `open_turn`: what to plan, or the receipt of a turn that ended before."""

    plan: PlanInput | None = None
    receipt: TurnResult | None = None
    refused: Failure | None = None


class RunFunction(Wire):
    """Input of `run_function`.

    Attributes:
        upstream: runtimes whose success this run may read.
    """

    session_id: str
    turn_id: str
    runtime_id: str
    timeout_ms: int
    upstream: tuple[str, ...] = ()
    job_id: str | None = None


class RunResult(Wire):
    """How a function run or an agent run ended; output and proposals stand in the store."""

    status: RunStatus
    reason: str = ""
    message: Outline = ""
    usage: UsageTotals = Field(default_factory=UsageTotals)


class CommitTurn(Wire):
    """Input of `commit_turn`: the end state of every node; `stopped` commits nothing.

    Runs are in commit order: topological, ties by code point (DECISIONS 3).
    """

    session_id: str
    turn_id: str
    incarnation: str
    origin: Origin = "player"
    runs: tuple[RunOutcome, ...] = ()
    deferred: tuple[str, ...] = ()
    stopped: Outline | None = None


class JobInput(Wire):
    """Starts a job."""

    session_id: str
    incarnation: str
    job: JobRef


class CommitJob(Wire):
    """Input of `commit_job`: commit what the job staged, or record how it failed."""

    session_id: str
    incarnation: str
    job_id: str
    turn_id: str
    runtime_id: str
    result: RunResult


JobStatus = Literal["queued", "running", "succeeded", "failed", "timed_out", "cancelled", "stale"]


class JobResult(Wire):
    """The end of a job."""

    job_id: str
    status: JobStatus
    reason: str = ""
    message: Outline = ""
    usage: UsageTotals = Field(default_factory=UsageTotals)


class GraphView(Wire):
    """Answer of Turn's `graph` query.

    Attributes:
        status: `failed` and `terminated` are words of our client: no workflow can say them of itself.
    """

    turn_id: str
    session_id: str
    status: Literal["running", "committed", "rejected", "stopped", "failed", "terminated"]
    logical_turn: int
    nodes: tuple[NodeState, ...]
    edges: Annotated[tuple[tuple[str, str], ...], Field(description="(upstream, downstream)")] = ()
    diagnostics: tuple[Outline, ...] = ()
