"""What workflows tell each other: `report` goes up, `deliver` goes down."""

from __future__ import annotations

from typing import Literal

from kernel.wire.approvals import Answer, Approval
from kernel.wire.base import Outline, Wire


class Report(Wire):
    """Goes up: Agent → Turn → Session, Job → Session. Exactly one field is set."""

    approval_opened: Approval | None = None
    job_ended: str | None = None
    job_status: Literal["succeeded", "failed", "timed_out", "cancelled", "stale"] | None = None


class Deliver(Wire):
    """Goes down: Session → Turn or Agent. Exactly one field is set."""

    answer: Answer | None = None
    stop: Outline | None = None
