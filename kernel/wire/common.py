"""Payload types that several workflows share: usage, failures, approvals, node states."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernel.errors import Code
from kernel.wire.base import Outline, Wire

Origin = Literal["player", "continuation", "manual", "background", "recursive", "resume"]
Stage = Literal["setup", "pre-turn", "narrative", "post-turn", "audit"]
STAGES: tuple[Stage, ...] = ("setup", "pre-turn", "narrative", "post-turn", "audit")

NodeStatus = Literal["waiting", "running", "success", "skipped", "suspended", "failed", "deferred"]


class UsageTotals(Wire):
    """What model calls cost.

    Attributes:
        calls: wire calls sent, failed ones and those of unknown outcome included.
        unknown: calls that were in flight when their worker died.
        input_tokens, output_tokens: as the provider reported them.
        cost_usd: US dollars, of the priced calls.
        unpriced: calls whose slot names no price.
    """

    calls: int = 0
    unknown: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(
            calls=self.calls + other.calls,
            unknown=self.unknown + other.unknown,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=round(self.cost_usd + other.cost_usd, 9),
            unpriced=self.unpriced + other.unpriced,
        )


class Failure(Wire):
    """Why something failed: a code for programs, an outline for people."""

    code: Code
    message: Outline = ""


class NodeState(Wire):
    """One runtime of a turn, as people see it."""

    runtime_id: str
    stage: Stage | None = None
    kind: Literal["agent", "function"] = "function"
    status: NodeStatus = "waiting"
    reason: str = ""
    message: Outline = ""
    started_at: float | None = None
    ended_at: float | None = None
    usage: UsageTotals = Field(default_factory=UsageTotals)


ApprovalStatus = Literal["open", "approved", "denied", "expired", "withdrawn"]


class Approval(Wire):
    """A question to a person that holds one tool call.

    Attributes:
        ref: id from turn, runtime, call and argument digest.
        workflow_id: the agent that waits.
        arguments: outline of the arguments; the whole stands in the store.
        deadline: Unix seconds after which the call counts as expired and is not executed.
    """

    ref: str
    turn_id: str
    runtime_id: str
    call_id: str
    tool: str
    workflow_id: str
    arguments: Outline = ""
    opened_at: float
    deadline: float
    status: ApprovalStatus = "open"


class JobRef(Wire):
    """A detached run that a committed turn left to do. Times in milliseconds."""

    job_id: str
    turn_id: str
    runtime_id: str
    settle: bool = False
    max_settle_wait_ms: int = 30_000
    max_queue_ms: int = 300_000
    max_execution_ms: int = 120_000


class Report(Wire):
    """Goes up: Agent → Turn → Session, Job → Session. Exactly one field is set."""

    approval_opened: Approval | None = None
    job_ended: str | None = None
    job_status: Literal["succeeded", "failed", "timed_out", "cancelled", "stale"] | None = None


class Answer(Wire):
    """What a person, or the deadline, said to an approval."""

    ref: str
    status: Literal["approved", "denied", "expired", "withdrawn"]
    note: Outline = ""
    actor: Outline = ""


class Deliver(Wire):
    """Goes down: Session → Turn or Agent. Exactly one field is set."""

    answer: Answer | None = None
    stop: Outline | None = None
