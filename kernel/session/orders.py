"""What the session's main loop may be told to do; one order at a time."""

from __future__ import annotations

from dataclasses import dataclass

from kernel.wire.approvals import Answer, Approval
from kernel.wire.session import Configure, Interject, QueuedAction, Run, SessionStatus, Submit
from kernel.wire.turn import JobRef


@dataclass(frozen=True)
class StoreAction:
    """Store an accepted action; from then on only its id is kept."""

    queued: QueuedAction
    submit: Submit | None = None
    run: Run | None = None


@dataclass(frozen=True)
class Apply:
    """Apply a recorded configuration; it is in force from the next turn."""

    revision: int
    configure: Configure


@dataclass(frozen=True)
class NoteInterjection:
    """Write an interjection to the store."""

    interject: Interject
    turn_id: str | None


@dataclass(frozen=True)
class NoteApproval:
    """Write an approval, or its end, to the inbox."""

    approval: Approval
    note: str = ""
    actor: str = ""


@dataclass(frozen=True)
class NoteWithdrawal:
    """Write that an action was cancelled in the queue, so that it does not run when it comes again."""

    queued: QueuedAction


@dataclass(frozen=True)
class Forward:
    """Send an answer down to the agent that waits."""

    workflow_id: str
    answer: Answer


@dataclass(frozen=True)
class Mirror:
    """Write the session's status to the store and the search attributes."""

    status: SessionStatus


@dataclass(frozen=True)
class StartTurn:
    """Start the turn of this action."""

    queued: QueuedAction


@dataclass(frozen=True)
class StopTurn:
    """Tell the running turn to stop."""

    turn_id: str
    reason: str


@dataclass(frozen=True)
class StartJob:
    """Start a detached run."""

    job: JobRef


@dataclass(frozen=True)
class Reconcile:
    """Ask how jobs stand that should have reported by now."""

    job_ids: tuple[str, ...]


@dataclass(frozen=True)
class ContinueAsNew:
    """Nothing is under way: carry the snapshot into a new run."""


@dataclass(frozen=True)
class End:
    """Return; the session is over."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do until something is recorded, or until this Unix time."""

    until: float | None = None


Order = (
    StoreAction
    | Apply
    | NoteInterjection
    | NoteApproval
    | NoteWithdrawal
    | Forward
    | Mirror
    | StartTurn
    | StopTurn
    | StartJob
    | Reconcile
    | ContinueAsNew
    | End
    | Wait
)
