"""Questions to people, and their answers."""

from __future__ import annotations

from typing import Literal

from kernel.wire.base import Outline, Wire

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


class Answer(Wire):
    """What a person, or the deadline, said to an approval; `refused`: too many are open, nobody was asked."""

    ref: str
    status: Literal["approved", "denied", "expired", "withdrawn", "refused"]
    note: Outline = ""
    actor: Outline = ""
