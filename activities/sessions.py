"""Store effects of the `Session` workflow."""

from __future__ import annotations

from typing import Any

from temporalio import activity

from activities.commits import save_receipt
from activities.configuring import Changes, Configuring
from activities.generations import frozen
from activities.heartbeat import beating
from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from kernel.wire import session as wire
from kernel.wire.base import outline
from kernel.wire.failure import Failure
from kernel.wire.ids import check_id
from kernel.wire.turn import PlanInput, TurnResult
from store import approvals, interjections, jobs, sessions, transcripts, turns
from store.connection import Connection
from store.engine import Store

_ANEW = "the session started anew"


class SessionActivities:
    """Everything that Session remembers.

    Args:
        turns_queue: task queue of turns where a deployment is configured, else None.
    """

    def __init__(self, store: Store, configuring: Configuring, *, turns_queue: str | None) -> None:
        self._store = store
        self._configuring = configuring
        self._turns_queue = turns_queue

    @activity.defn(name=names.OPEN_SESSION)
    async def open_session(self, request: wire.OpenSession) -> wire.OpenedSession:
        """Create the session, or go on with the one that a lost workflow left.

        Raises:
            TurnwrightError: `session.ended` for an id that was used up, or what activation refuses.
        """
        async with beating():
            check_id(request.session_id, "session_id")
            async with self._store.read() as conn:
                existing = await sessions.get(conn, request.session_id)
            changes = Changes({})
            if _is_to_choose(existing, request):
                changes = await self._configuring.changes(request.session_id, existing, _asked(request))
            async with self._store.write() as conn:
                write = self._renewed if existing else self._created
                session = await write(conn, request, changes)
                open_turns = await turns.list_open(conn, request.session_id) if existing else []
            given = {"orphans": tuple(turn.turn_id for turn in open_turns), "notices": changes.notices}
            return wire.OpenedSession(
                clock=wire.Clock(phase="playing", completed_player_turns=session.completed_player_turns),
                packages=tuple(entry["package_id"] for entry in session.active),
                **{name: value for name, value in given.items() if value},
            )

    @activity.defn(name=names.CONFIGURE_SESSION)
    async def configure_session(self, request: wire.ApplyConfigure) -> wire.Applied:
        """Put a configuration in force, or say why not; in either case its revision is used up."""
        async with beating():
            async with self._store.read() as conn:
                session = await sessions.require(conn, request.session_id)
            given: dict[str, Any] = {}
            changes = Changes({})
            try:
                changes = await self._configuring.changes(request.session_id, session, request.configure)
                given = {"notices": changes.notices} if changes.notices else {}
            except TurnwrightError as error:
                given = {"refused": Failure(code=error.code, message=outline(error.account))}
            async with self._store.write() as conn:
                session = await sessions.lock(conn, request.session_id)
                if session.revision < request.revision:
                    columns = {**changes.columns, "revision": request.revision}
                    await sessions.update(conn, session.session_id, **columns)
            return wire.Applied(**given)

    @activity.defn(name=names.CLOSE_SESSION)
    async def close_session(self, request: wire.SetSessionStatus) -> wire.Applied:
        """Mirror the session's status."""
        async with self._store.write() as conn:
            await sessions.update(conn, request.session_id, status=request.status)
        return wire.Applied()

    @activity.defn(name=names.ACCEPT_ACTION)
    async def accept_action(self, request: wire.AcceptAction) -> wire.AcceptedAction:
        """Store an action once; says whether its turn has ended before."""
        message = request.submit or request.run
        if message is None:
            raise TurnwrightError(Code.WIRE_MALFORMED, "an action without content")
        submit, run = request.submit, request.run
        async with self._store.write() as conn:
            new = await turns.accept_action(
                conn,
                session_id=request.session_id,
                action_id=message.action_id,
                turn_id=request.turn_id,
                origin="player" if submit else "manual",
                text=submit.text if submit else "",
                payload=message.payload,
                runtime_id=run.runtime_id if run else None,
            )
            ended = not new and await turns.get_receipt(conn, request.turn_id) is not None
        queue = {"turns_queue": self._turns_queue} if self._turns_queue else {}
        done = {"done": True} if ended else {}
        return wire.AcceptedAction(**queue, **done)

    @activity.defn(name=names.WITHDRAW_ACTION)
    async def withdraw_action(self, request: wire.WithdrawAction) -> wire.Applied:
        """Give an action that was cancelled in the queue the receipt of a stopped turn."""
        queued = request.queued
        async with self._store.write() as conn:
            session = await sessions.lock(conn, request.session_id)
            receipt = TurnResult(
                session_id=request.session_id,
                turn_id=queued.turn_id,
                status="stopped",
                completed_player_turns=session.completed_player_turns,
                reason=Code.TURN_STOPPED,
                message="it left the queue before it ran",
            )
            nothing = PlanInput(logical_turn=session.completed_player_turns + 1)
            await turns.open_turn(
                conn,
                turn_id=queued.turn_id,
                session_id=request.session_id,
                action_id=queued.action_id,
                origin=queued.origin,
                logical_turn=nothing.logical_turn,
                generation=frozen(session, {}, nothing),
            )
            await save_receipt(conn, receipt)
        return wire.Applied()

    @activity.defn(name=names.RECORD_APPROVAL)
    async def record_approval(self, request: wire.RecordApproval) -> wire.Applied:
        """Write an approval, or its end, to the inbox."""
        approval = request.approval
        async with self._store.write() as conn:
            if approval.status == "open":
                await approvals.record(
                    conn,
                    ref=approval.ref,
                    session_id=request.session_id,
                    turn_id=approval.turn_id,
                    runtime_id=approval.runtime_id,
                    call_id=approval.call_id,
                    tool=approval.tool,
                    workflow_id=approval.workflow_id,
                    arguments=await _arguments(conn, approval.turn_id, approval.runtime_id, approval.call_id),
                    opened_at=approval.opened_at,
                    deadline=approval.deadline,
                )
            else:
                await approvals.close(
                    conn, approval.ref, status=approval.status, note=request.note, actor=request.actor
                )
        return wire.Applied()

    @activity.defn(name=names.RECORD_INTERJECTION)
    async def record_interjection(self, request: wire.RecordInterjection) -> wire.Applied:
        """Store steering text."""
        async with self._store.write() as conn:
            await interjections.add(
                conn,
                session_id=request.session_id,
                interjection_id=request.interject.interjection_id,
                turn_id=request.turn_id,
                text=request.interject.text,
            )
        return wire.Applied()

    async def _created(
        self, conn: Connection, request: wire.OpenSession, changes: Changes
    ) -> sessions.Session:
        session, _ = await sessions.create(
            conn,
            session_id=request.session_id,
            incarnation=request.incarnation,
            locale=request.locale,
            phase="playing",
            **changes.columns,
        )
        return session

    async def _renewed(
        self, conn: Connection, request: wire.OpenSession, changes: Changes
    ) -> sessions.Session:
        """A session whose workflow was lost goes on under a new incarnation; an ended one does not.

        What the lost one left can commit nothing any more: its questions and jobs are closed.
        """
        existing = await sessions.lock(conn, request.session_id)
        if existing.incarnation == request.incarnation:
            return existing
        if existing.status == "ended":
            raise TurnwrightError(
                Code.SESSION_ENDED, f"session {request.session_id!r} has ended", accepted="another session id"
            )
        for approval in await approvals.list_approvals(conn, session_id=request.session_id):
            await approvals.close(conn, approval.ref, status="withdrawn", note=_ANEW)
        await jobs.end_all(conn, request.session_id, status="stale", reason=Code.SESSION_STALE, message=_ANEW)
        anew: dict[str, Any] = {"incarnation": request.incarnation, "status": "active", "revision": 0}
        return await sessions.update(conn, request.session_id, **changes.columns, **anew)


def _is_to_choose(existing: sessions.Session | None, request: wire.OpenSession) -> bool:
    """Whether packages are to be activated: by a session that starts anew only those that are asked for."""
    if existing is None:
        return True
    anew = existing.incarnation != request.incarnation and existing.status != "ended"
    return anew and _asked(request) != wire.Configure()


def _asked(request: wire.OpenSession) -> wire.Configure:
    names = ("packages", "excluded", "providers", "settings")
    given = {name: value for name in names if (value := getattr(request, name)) is not None}
    return wire.Configure(**given)


async def _arguments(conn: Connection, turn_id: str, runtime_id: str, call_id: str) -> Any:
    """The arguments of a call, for the person who decides about it."""
    for entry in await transcripts.load(conn, turn_id, runtime_id):
        for call in entry.message.get("tool_calls", ()):
            if call["id"] == call_id:
                return call["arguments"]
    return None
