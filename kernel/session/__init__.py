"""The session as a state machine: handlers record into it, the main loop asks it what to do next."""

from kernel.session.checks import check_configure, check_control, check_interject, check_run, check_submit
from kernel.session.orders import (
    Apply,
    ContinueAsNew,
    End,
    Forward,
    Mirror,
    NoteApproval,
    NoteInterjection,
    NoteWithdrawal,
    Order,
    Reconcile,
    StartJob,
    StartTurn,
    StopTurn,
    StoreAction,
    Wait,
)
from kernel.session.state import SessionState

__all__ = [
    "Apply",
    "ContinueAsNew",
    "End",
    "Forward",
    "Mirror",
    "NoteApproval",
    "NoteInterjection",
    "NoteWithdrawal",
    "Order",
    "Reconcile",
    "SessionState",
    "StartJob",
    "StartTurn",
    "StopTurn",
    "StoreAction",
    "Wait",
    "check_configure",
    "check_control",
    "check_interject",
    "check_run",
    "check_submit",
]
