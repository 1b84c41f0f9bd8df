"""Payloads of the `Session` workflow: the public contract of `docs/temporal-interface.md`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernel.errors import Code
from kernel.wire.approvals import Approval
from kernel.wire.base import Json, Outline, Wire
from kernel.wire.failure import Failure
from kernel.wire.turn import JobRef, Origin

SessionStatus = Literal["active", "paused", "ended"]
Phase = Literal["setup", "playing"]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Ids = Annotated[tuple[Id, ...], Field(max_length=1000)]
Providers = Annotated[dict[Id, Id | None], Field(max_length=1000)]
PlayerSettings = Annotated[dict[Id, dict[Id, Json]], Field(max_length=1000)]


class QueuedAction(Wire):
    """An accepted action whose turn has not run yet."""

    action_id: str
    turn_id: str
    origin: Origin = "player"


class OpenJob(Wire):
    """A job that Session has started, or will start, and that has not reported its end."""

    job: JobRef
    started_at: float | None = None


class Clock(Wire):
    """The session clock, mirrored from the store. Spec: plugin-model §2."""

    phase: Phase = "playing"
    completed_player_turns: int = 0


class LastTurn(Wire):
    """How the newest finished turn ended."""

    turn_id: str
    status: Literal["committed", "rejected", "stopped", "failed"]
    message: Outline = ""


class Notice(Wire):
    """Something that did not go as asked and that a person should know.

    Attributes:
        refused: revision of the configuration that was refused for it.
    """

    code: Code
    message: Outline = ""
    refused: int | None = None


class SessionSnapshot(Wire):
    """What a session carries over when it continues as new; at most 64 KiB."""

    incarnation: str
    status: SessionStatus = "active"
    clock: Clock = Field(default_factory=Clock)
    queue: tuple[QueuedAction, ...] = ()
    revision: int = 0
    jobs: tuple[OpenJob, ...] = ()
    approvals: tuple[Approval, ...] = ()
    recent: tuple[QueuedAction, ...] = ()
    notices: tuple[Notice, ...] = ()
    last_turn: LastTurn | None = None
    ending: bool = False
    turns_queue: str | None = None


class SessionInput(Wire):
    """Starts a session.

    Attributes:
        session_id: the id the workflow id was printed from; `check_id` says which can be used.
        packages: packages asked for; None asks for every bundled package, or for those that the session
            has when it starts anew.
        excluded, providers, settings: as in `Configure`.
        locale: content locale; `configure` changes it.
        snapshot: carried over by continue-as-new; leave it out.
    """

    session_id: str
    packages: Ids | None = None
    excluded: Ids | None = None
    providers: Providers | None = None
    settings: PlayerSettings | None = None
    locale: Annotated[str, Field(max_length=35)] = "en"
    snapshot: SessionSnapshot | None = None


class SessionResult(Wire):
    """How a session ended."""

    session_id: str
    completed_player_turns: int


class Submit(Wire):
    """`submit`: a player's action. The same `action_id` twice is one turn."""

    action_id: str
    text: str
    payload: Json = None


class Run(Wire):
    """`run`: activate a manual runtime. The same `action_id` twice is one execution."""

    action_id: str
    runtime_id: Id
    payload: Json = None


class Receipt(Wire):
    """Answer of `submit` and `run`: where the turn runs, or will run.

    `workflow_id` may not exist for a moment; `position` 0 is the running or next turn.
    """

    turn_id: str
    workflow_id: str
    position: int


class Resolve(Wire):
    """`resolve`, update and signal: a person's answer to an approval."""

    ref: Id
    decision: Literal["approve", "deny"]
    note: Outline = ""
    actor: Outline = ""


class ResolveReceipt(Wire):
    """`applied`, or `superseded` when another answer or the deadline came first."""

    ref: str
    outcome: Literal["applied", "superseded"]


class Interject(Wire):
    """`interject`, update and signal: steering text for the running story."""

    interjection_id: str
    text: str


class InterjectReceipt(Wire):
    """The interjection is recorded with the running turn, or without one between turns."""

    interjection_id: str
    turn_id: str | None = None


class Configure(Wire):
    """`configure`: what changes from the next turn on; a field left out stays as it is.

    Attributes:
        packages: the whole list of packages asked for.
        excluded: the whole list of packages that the session will not have, whoever needs them.
        providers: contract → package that answers for it; joined to those before, null takes a choice back.
        settings: package → key → value; joined to those before, null takes a value back.
        bindings: model slot or runtime id → slot that answers for it.
        locale: locale of labels.
    """

    packages: Ids | None = None
    excluded: Ids | None = None
    providers: Providers | None = None
    settings: PlayerSettings | None = None
    bindings: Annotated[dict[str, str], Field(max_length=1000)] | None = None
    locale: Annotated[str, Field(max_length=35)] | None = None


class ConfigureReceipt(Wire):
    """The change is recorded as this revision; `state` shows when it is in force or refused."""

    revision: int


class Control(Wire):
    """`control`: pause, resume or end the session, or stop a turn."""

    action: Literal["pause", "resume", "end", "cancel-turn"]
    turn_id: str | None = None


class ControlReceipt(Wire):
    """The session's status once the request is recorded."""

    status: SessionStatus
    ending: bool = False


class SessionView(Wire):
    """Answer of the `state` query. `failed`: the session did not open, and its last notice says why."""

    session_id: str
    status: SessionStatus | Literal["failed"]
    phase: Phase
    completed_player_turns: int
    queue: tuple[QueuedAction, ...]
    running: QueuedAction | None
    approvals: tuple[Approval, ...]
    jobs: tuple[OpenJob, ...]
    last_turn: LastTurn | None
    revision: int
    notices: tuple[Notice, ...]


class OpenSession(Wire):
    """Input of `open_session`: create or load the session's record."""

    session_id: str
    incarnation: str
    packages: tuple[str, ...] | None = None
    excluded: tuple[str, ...] | None = None
    providers: dict[str, str | None] | None = None
    settings: dict[str, dict[str, Json]] | None = None
    locale: str = "en"


class OpenedSession(Wire):
    """The session as stored: its clock, and what it may already have behind it.

    Attributes:
        orphans: turns that a lost workflow of this session left open.
        notices: packages that were asked for and are not active.
    """

    clock: Clock = Field(default_factory=Clock)
    status: SessionStatus = "active"
    packages: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


class AcceptAction(Wire):
    """Input of `accept_action`: store an action before its turn is queued."""

    session_id: str
    turn_id: str
    submit: Submit | None = None
    run: Run | None = None


class AcceptedAction(Wire):
    """Answer of `accept_action`.

    Attributes:
        done: the action's turn ended long ago: nothing is left to run.
        turns_queue: task queue that turns and jobs of this session start on now.
    """

    done: bool = False
    turns_queue: str | None = None


class WithdrawAction(Wire):
    """Input of `withdraw_action`: give an action that was cancelled in the queue its receipt."""

    session_id: str
    queued: QueuedAction


class ApplyConfigure(Wire):
    """Input of `configure_session`."""

    session_id: str
    revision: int
    configure: Configure


class Applied(Wire):
    """Whether a recorded change is in force; a refusal names why.

    Attributes:
        notices: what a person should know of a change that is in force.
    """

    refused: Failure | None = None
    notices: tuple[Notice, ...] = ()


class RecordApproval(Wire):
    """Input of `record_approval`: write an approval, or its end, to the inbox."""

    session_id: str
    approval: Approval
    note: Outline = ""
    actor: Outline = ""


class RecordInterjection(Wire):
    """Input of `record_interjection`."""

    session_id: str
    turn_id: str | None
    interject: Interject


class SetSessionStatus(Wire):
    """Input of `close_session`: mirror a status change to the store."""

    session_id: str
    status: SessionStatus


class ReconcileJobs(Wire):
    """Input of `reconcile_jobs`: ask Temporal how these jobs stand."""

    session_id: str
    job_ids: tuple[str, ...]


class ReconciledJobs(Wire):
    """The jobs of the question that no longer run, with how they ended."""

    ended: dict[str, str] = Field(default_factory=dict)
