"""Store effects of the `Session` workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.catalog import Catalog, Source
from activities.commits import save_receipt
from activities.generations import frozen
from activities.heartbeat import beating
from kernel.catalog import activate
from kernel.errors import Code, TurnwrightError
from kernel.policy import not_admitted
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
        slots: names of the configured model slots.
    """

    def __init__(
        self, store: Store, catalog: Catalog, *, turns_queue: str | None, slots: Sequence[str]
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._turns_queue = turns_queue
        self._slots = frozenset(slots)

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
            chosen = (
                await self._choose(request.session_id, request.packages)
                if _is_to_choose(existing, request)
                else None
            )
            async with self._store.write() as conn:
                session = await (
                    self._renewed(conn, request, chosen)
                    if existing
                    else self._created(conn, request, chosen or ())
                )
                open_turns = await turns.list_open(conn, request.session_id) if existing else []
            orphans = {"orphans": tuple(turn.turn_id for turn in open_turns)} if open_turns else {}
            return wire.OpenedSession(
                clock=wire.Clock(phase="playing", completed_player_turns=session.completed_player_turns),
                packages=tuple(entry["package_id"] for entry in session.active),
                **orphans,
            )

    @activity.defn(name=names.CONFIGURE_SESSION)
    async def configure_session(self, request: wire.ApplyConfigure) -> wire.Applied:
        """Put a configuration in force, or say why not; in either case its revision is used up."""
        async with beating():
            refused, chosen = None, None
            try:
                self._check_bindings(request.configure.bindings or {})
                if request.configure.packages is not None:
                    chosen = await self._choose(request.session_id, request.configure.packages)
            except TurnwrightError as error:
                refused = Failure(code=error.code, message=outline(error.account))
            async with self._store.write() as conn:
                session = await sessions.lock(conn, request.session_id)
                if session.revision < request.revision:
                    changes = {} if refused else await self._changes(conn, session, request.configure, chosen)
                    await sessions.update(conn, session.session_id, revision=request.revision, **changes)
            return wire.Applied(refused=refused) if refused else wire.Applied()

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
                generation=frozen(session.active, session.bindings, session.locale, nothing),
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
        self, conn: Connection, request: wire.OpenSession, chosen: Sequence[Source]
    ) -> sessions.Session:
        session, _ = await sessions.create(
            conn,
            session_id=request.session_id,
            incarnation=request.incarnation,
            packages=request.packages,
            active=[await self._catalog.freeze(conn, source, request.session_id) for source in chosen],
            locale=request.locale,
            phase="playing",
        )
        return session

    async def _renewed(
        self, conn: Connection, request: wire.OpenSession, chosen: Sequence[Source] | None
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
        changes = await self._changes(conn, existing, wire.Configure(packages=request.packages), chosen)
        changes |= {"incarnation": request.incarnation, "status": "active", "revision": 0}
        return await sessions.update(conn, request.session_id, **changes)

    async def _choose(self, session_id: str, requested: Sequence[str] | None) -> list[Source]:
        """The packages to activate, read and judged outside any transaction."""
        sources = await self._catalog.sources()
        wanted = self._catalog.bundled_ids() if requested is None else requested
        for name in wanted:
            if name not in sources and (problems := await asyncio.to_thread(self._catalog.diagnose, name)):
                raise TurnwrightError(Code.PACKAGE_INVALID, problems, where=name)
        active = activate(wanted, {name: source.package for name, source in sources.items()})
        chosen = [sources[package.id] for package in active]
        approved = await self._catalog.approved(chosen, session_id)
        for source in chosen:
            if source.digest not in approved:
                raise not_admitted(source.package.id)
            await self._catalog.try_code(source)
        return chosen

    def _check_bindings(self, bindings: Mapping[str, str]) -> None:
        if unknown := sorted(set(bindings.values()) - self._slots):
            raise TurnwrightError(
                Code.MODEL_UNCONFIGURED, f"no slot {unknown[0]!r}", accepted=", ".join(sorted(self._slots))
            )

    async def _changes(
        self,
        conn: Connection,
        session: sessions.Session,
        configure: wire.Configure,
        chosen: Sequence[Source] | None,
    ) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if chosen is not None:
            changes["packages"] = list(configure.packages or ())
            changes["active"] = [
                await self._catalog.freeze(conn, source, session.session_id) for source in chosen
            ]
        if configure.bindings is not None:
            changes["bindings"] = {**session.bindings, **configure.bindings}
        if configure.locale is not None:
            changes["locale"] = configure.locale
        return changes


def _is_to_choose(existing: sessions.Session | None, request: wire.OpenSession) -> bool:
    """Whether packages are to be activated: by a session that starts anew only those that are asked for."""
    if existing is None:
        return True
    anew = existing.incarnation != request.incarnation and existing.status != "ended"
    return anew and request.packages is not None


async def _arguments(conn: Connection, turn_id: str, runtime_id: str, call_id: str) -> Any:
    """The arguments of a call, for the person who decides about it."""
    for entry in await transcripts.load(conn, turn_id, runtime_id):
        for call in entry.message.get("tool_calls", ()):
            if call["id"] == call_id:
                return call["arguments"]
    return None
