"""The runtimes of a turn as people see them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernel.wire.base import Outline, Wire
from kernel.wire.usage import UsageTotals

Stage = Literal["setup", "pre-turn", "narrative", "post-turn", "audit"]
STAGES: tuple[Stage, ...] = ("setup", "pre-turn", "narrative", "post-turn", "audit")

NodeStatus = Literal["waiting", "running", "success", "skipped", "suspended", "failed", "deferred"]


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
