"""Every name that crosses a border: workflow types, messages, activities, queues, attributes.

`docs/temporal-interface.md` prints the public ones; changing one of those is a change of contract.
"""

from __future__ import annotations

from typing import Final

# Workflow types
SESSION: Final = "Session"
TURN: Final = "Turn"
AGENT: Final = "Agent"
JOB: Final = "Job"

# Messages to Session
SUBMIT: Final = "submit"
RESOLVE: Final = "resolve"
INTERJECT: Final = "interject"
CONFIGURE: Final = "configure"
RUN: Final = "run"
CONTROL: Final = "control"
STATE: Final = "state"

# Messages inside, and Turn's query
REPORT: Final = "report"
DELIVER: Final = "deliver"
GRAPH: Final = "graph"

# Activities
OPEN_SESSION: Final = "open_session"
CONFIGURE_SESSION: Final = "configure_session"
CLOSE_SESSION: Final = "close_session"
ACCEPT_ACTION: Final = "accept_action"
WITHDRAW_ACTION: Final = "withdraw_action"
RECORD_APPROVAL: Final = "record_approval"
RECORD_INTERJECTION: Final = "record_interjection"
RECONCILE_JOBS: Final = "reconcile_jobs"
OPEN_TURN: Final = "open_turn"
RUN_FUNCTION: Final = "run_function"
CALL_MODEL: Final = "call_model"
RUN_TOOL: Final = "run_tool"
COMMIT_TURN: Final = "commit_turn"
COMMIT_JOB: Final = "commit_job"

# Task queues
QUEUE: Final = "turnwright"

# Search attributes, all Keyword
ATTRIBUTE_SESSION: Final = "TurnwrightSession"
ATTRIBUTE_TURN: Final = "TurnwrightTurn"
ATTRIBUTE_STATUS: Final = "TurnwrightStatus"
ATTRIBUTE_WAITING_FOR: Final = "TurnwrightWaitingFor"
ATTRIBUTES: Final = (ATTRIBUTE_SESSION, ATTRIBUTE_TURN, ATTRIBUTE_STATUS, ATTRIBUTE_WAITING_FOR)


def functions_queue(queue: str) -> str:
    """The queue that function runtimes of a workflow queue's family wait on."""
    return f"{queue}-functions"


def turns_queue(queue: str) -> str:
    """The queue of turns and jobs where a deployment is configured: their classes are pinned there."""
    return f"{queue}-turns"
