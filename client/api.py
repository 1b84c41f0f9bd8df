"""The typed client: everything a person or a program may ask of sessions and turns.

Every call is bounded, and every failure is a `TurnwrightError` with its code and workflow id.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal, Self
from uuid import uuid4

from temporalio.client import Client
from temporalio.common import (
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import TemporalError, WorkflowAlreadyStartedError

from client import calls, failures, running, waiting, watchdog
from client.checks import built, check_id, check_payload, check_text, placed
from client.choices import SessionPackages, packages_of
from client.history import History, TurnRecord
from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from kernel.wire import session as wire
from kernel.wire.base import Json
from kernel.wire.ids import parse_workflow_id, session_workflow, turn_workflow
from kernel.wire.turn import GraphView, TurnResult
from link import attributes
from link.connect import connect
from link.settings import Settings, load_settings
from store.approvals import Approval
from store.jobs import Job
from store.stream import Piece, StreamOffset

TASK_TIMEOUT: Final = timedelta(seconds=3)
CONFIGURE_S: Final = 30.0
_POLL_S: Final = 0.1
_TURN_ID: Final = re.compile(r"^[A-Za-z0-9._~:@-]{1,200}$")


@dataclass(frozen=True)
class SessionSummary:
    """A session in a list. `packages` and `turns` are empty where no store is open."""

    session_id: str
    status: str
    turns: int = 0
    packages: tuple[str, ...] = ()
    updated_at: float = 0.0


class Turnwright:
    """A connection to Temporal and, where it can be opened, to the store.

    Attributes:
        temporal: the Temporal client, for whatever this class does not do.
        history: reads of the store.
    """

    def __init__(self, settings: Settings, temporal: Client, history: History) -> None:
        self.settings = settings
        self.temporal = temporal
        self.history = history

    @classmethod
    async def connect(cls, settings: Settings | None = None) -> Self:
        """Connect.

        Args:
            settings: read from file and environment when left out; what `turnwright dev` runs under the
                same home is found by itself.

        Raises:
            TurnwrightError: `server.unreachable`, `config.*`.
        """
        settings = settings or running.found(load_settings())
        temporal = await connect(settings)
        return cls(settings, temporal, await History.open(settings.store_url))

    async def close(self) -> None:
        """Close the store; the Temporal client needs no closing."""
        await self.history.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Sessions

    async def new_session(
        self,
        session_id: str,
        packages: Sequence[str] | None = None,
        locale: str = "en",
        *,
        excluded: Sequence[str] | None = None,
        providers: Mapping[str, str | None] | None = None,
        settings: Mapping[str, Mapping[str, Json]] | None = None,
    ) -> wire.SessionView:
        """Create a session and wait until it has loaded itself.

        Args:
            packages: package ids; None asks for every bundled one.
            excluded, providers, settings: as in `configure`.

        Raises:
            TurnwrightError: `session.exists`, `package.unknown`, whatever else activation refuses, or why
                the session does not come to open.
        """
        workflow_id = _session(session_id)
        with placed(workflow_id):
            fields = {
                "session_id": session_id,
                "packages": packages,
                "excluded": excluded,
                "providers": providers,
                "settings": settings,
                "locale": locale,
            }
            start = built(wire.SessionInput, fields)
        try:
            handle = await self.temporal.start_workflow(
                names.SESSION,
                start,
                id=workflow_id,
                task_queue=self.settings.temporal.queue,
                result_type=wire.SessionResult,
                task_timeout=TASK_TIMEOUT,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                static_summary=f"session {session_id}",
                static_details=f"packages: {', '.join(packages) if packages else 'every bundled one'}",
                search_attributes=_attributes(session_id),
                rpc_timeout=timedelta(seconds=10),
            )
        except WorkflowAlreadyStartedError:
            raise await self._taken(workflow_id, session_id) from None
        except TemporalError as error:
            raise failures.named(error, workflow_id) from None
        await waiting.until_open(self.temporal, handle)
        return await self.state(session_id)

    async def state(self, session_id: str) -> wire.SessionView:
        """Clock, queue, running turn, approvals, jobs, notices."""
        return await calls.query(self.temporal, _session(session_id), names.STATE, wire.SessionView)

    async def require_alive(self, session_id: str) -> None:
        """Refuse a session whose workflow failed or was terminated: a query alone does not tell the latter.

        Raises:
            TurnwrightError: what it failed with, or `workflow.failed`.
        """
        workflow_id = _session(session_id)
        if await watchdog.end_without_result(self.temporal, workflow_id):
            try:
                await self.temporal.get_workflow_handle(workflow_id).result(rpc_timeout=timedelta(seconds=10))
            except TemporalError as error:
                raise failures.named(error, workflow_id) from None

    async def sessions(self) -> list[SessionSummary]:
        """Sessions, the last changed first; from the server alone where no store is open."""
        if self.history.available:
            return [
                SessionSummary(
                    session_id=known.session_id,
                    status=known.status,
                    turns=known.completed_player_turns,
                    packages=tuple(package["package_id"] for package in known.active),
                    updated_at=known.updated_at,
                )
                for known in await self.history.sessions()
            ]
        return await self._listed()

    async def packages(self, session_id: str) -> SessionPackages:
        """What a session asks for and what it has, with reasons.

        Raises:
            TurnwrightError: `session.unknown`, `store.*`.
        """
        return packages_of(await self.history.session(check_id(session_id, "session")))

    async def configure(
        self,
        session_id: str,
        *,
        packages: Sequence[str] | None = None,
        excluded: Sequence[str] | None = None,
        providers: Mapping[str, str | None] | None = None,
        settings: Mapping[str, Mapping[str, Json]] | None = None,
        bindings: Mapping[str, str] | None = None,
        locale: str | None = None,
        wait_s: float = CONFIGURE_S,
    ) -> int | None:
        """Change what holds from the next turn on, and wait until it does.

        Args:
            packages, excluded: whole lists of package ids.
            providers: contract → package, joined to those before; None takes a choice back.
            settings: package → key → value, joined to those before; None takes a value back.
            bindings: model slot or runtime id → slot, joined to those before.

        Returns:
            The revision in force; None when a turn that runs on held it up for `wait_s`: the change is
            recorded then, and takes effect once the turn has ended.

        Raises:
            TurnwrightError: why the change was refused.
        """
        changes = {
            "packages": packages,
            "excluded": excluded,
            "providers": providers,
            "settings": settings,
            "bindings": bindings,
            "locale": locale,
        }
        with placed(_session(session_id)):
            message = built(wire.Configure, changes)
        receipt = await calls.update(
            self.temporal, _session(session_id), names.CONFIGURE, message, wire.ConfigureReceipt
        )
        return await self._in_force(session_id, receipt.revision, wait_s)

    async def control(
        self,
        session_id: str,
        action: Literal["pause", "resume", "end", "cancel-turn"],
        turn_id: str | None = None,
    ) -> wire.ControlReceipt:
        """Pause, resume or end a session, or stop a turn of it: the running one when none is named."""
        message = wire.Control(action=action, **({"turn_id": turn_id} if turn_id else {}))
        return await calls.update(
            self.temporal, _session(session_id), names.CONTROL, message, wire.ControlReceipt
        )

    # Turns

    async def submit(
        self, session_id: str, text: str, action_id: str | None = None, payload: Json = None
    ) -> wire.Receipt:
        """Enqueue a player's action; the same `action_id` twice is one turn."""
        with placed(_session(session_id)):
            fields = {
                "action_id": check_id(action_id or uuid4().hex, "action_id"),
                "text": check_text(text),
                "payload": check_payload(payload),
            }
            message = built(wire.Submit, fields)
        return await calls.update(self.temporal, _session(session_id), names.SUBMIT, message, wire.Receipt)

    async def run(
        self, session_id: str, runtime_id: str, payload: Json = None, action_id: str | None = None
    ) -> wire.Receipt:
        """Activate a manual runtime; the same `action_id` twice is one execution."""
        with placed(_session(session_id)):
            fields = {
                "action_id": check_id(action_id or uuid4().hex, "action_id"),
                "runtime_id": check_id(runtime_id, "runtime"),
                "payload": check_payload(payload),
            }
            message = built(wire.Run, fields)
        return await calls.update(self.temporal, _session(session_id), names.RUN, message, wire.Receipt)

    async def wait(self, receipt: wire.Receipt) -> TurnResult:
        """Wait for the end of a turn, for as long as it takes.

        Raises:
            TurnwrightError: the code of a failed turn, or why it does not go on: `workflow.stuck`,
                `worker.absent`, `turn.stopped`, `session.ended`.
        """
        return await waiting.until_done(self.temporal, receipt, self.history.result)

    async def graph(self, turn: str) -> GraphView:
        """Every node of a turn with its state, of a closed turn too.

        A workflow that failed or was terminated still says `running`; here the turn has the server's word.

        Args:
            turn: a turn's id or workflow id.

        Raises:
            TurnwrightError: `turn.unknown`, or why there is no answer.
        """
        workflow_id = await self.turn_workflow(turn)
        view = await calls.query(self.temporal, workflow_id, names.GRAPH, GraphView)
        if view.status != "running":
            return view
        end = await watchdog.end_without_result(self.temporal, workflow_id)
        return view.model_copy(update={"status": end}) if end else view

    async def turn(self, turn: str) -> TurnRecord:
        """A turn as the store knows it, and how its workflow ended where the store does not know.

        Args:
            turn: a turn's id or workflow id.

        Raises:
            TurnwrightError: `turn.unknown`, `store.*`.
        """
        record = await self.history.turn(_plain_turn(turn))
        if record.result:
            return record
        workflow_id = turn_workflow(record.action.session_id, record.action.turn_id)
        try:
            end = await watchdog.end_without_result(self.temporal, workflow_id)
        except TurnwrightError as error:
            if error.code != Code.TURN_UNKNOWN:  # it waits in the queue, or is too old for the server
                raise
            return record
        return replace(record, status=end) if end else record

    def stream(self, turn: str, after: StreamOffset | None = None) -> AsyncIterator[Piece]:
        """The live text of a turn or a job, until its end or until the caller stops."""
        return self.history.stream(_plain_turn(turn), after)

    async def turn_workflow(self, turn: str) -> str:
        """The workflow id of a turn.

        Raises:
            TurnwrightError: `turn.unknown`.
        """
        ref = parse_workflow_id(turn)
        if ref and ref.kind == "turn":
            return turn
        owner = await self.history.owner(turn) if self.history.available else None
        found = turn_workflow(owner, turn) if owner else await self._search(turn)
        if found is None:
            raise TurnwrightError(Code.TURN_UNKNOWN, f"there is no turn {turn[:60]!r}")
        return found

    # People

    async def inbox(self, session_id: str | None = None) -> list[Approval]:
        """Open questions, of all sessions or of one, oldest first.

        Raises:
            TurnwrightError: `session.unknown`, `store.*`.
        """
        return await self.history.inbox(await self._known(session_id))

    async def resolve(
        self,
        ref: str,
        decision: Literal["approve", "deny"],
        *,
        note: str = "",
        actor: str = "",
        session_id: str | None = None,
    ) -> wire.ResolveReceipt:
        """Answer an approval; the first answer wins. The session is found in the inbox when not given."""
        owner = session_id or (await self.history.approval(ref)).session_id
        message = _resolve(owner, ref, decision, note, actor)
        return await calls.update(self.temporal, _session(owner), names.RESOLVE, message, wire.ResolveReceipt)

    async def resolve_by_signal(
        self,
        ref: str,
        decision: Literal["approve", "deny"],
        *,
        note: str = "",
        actor: str = "",
        session_id: str | None = None,
    ) -> None:
        """The same as a plain signal: sent, without an answer."""
        session_id = session_id or (await self.history.approval(ref)).session_id
        message = _resolve(session_id, ref, decision, note, actor)
        workflow_id = _session(session_id)
        try:
            handle = self.temporal.get_workflow_handle(workflow_id)
            await handle.signal(names.RESOLVE, message, rpc_timeout=watchdog.RPC)
        except TemporalError as error:
            if failures.is_missing(error) and (
                problem := await watchdog.diagnose(self.temporal, workflow_id)
            ):
                raise problem from None
            raise failures.named(error, workflow_id) from None

    async def interject(
        self, session_id: str, text: str, interjection_id: str | None = None
    ) -> wire.InterjectReceipt:
        """Record steering text for the running story."""
        with placed(_session(session_id)):
            fields = {
                "interjection_id": check_id(interjection_id or uuid4().hex, "interjection_id"),
                "text": check_text(text),
            }
            message = built(wire.Interject, fields)
        return await calls.update(
            self.temporal, _session(session_id), names.INTERJECT, message, wire.InterjectReceipt
        )

    async def jobs(self, session_id: str | None = None) -> list[Job]:
        """Detached runs, of the last sessions or of one, newest first.

        Raises:
            TurnwrightError: `session.unknown`, `store.*`.
        """
        return await self.history.jobs(await self._known(session_id))

    # Inner workings

    async def _known(self, session_id: str | None) -> str | None:
        """The session that a list is asked for, where one is, if the store knows it."""
        if session_id is not None and not await self.history.knows(check_id(session_id, "session")):
            raise failures.unknown(_session(session_id))
        return session_id

    async def _taken(self, workflow_id: str, session_id: str) -> TurnwrightError:
        with contextlib.suppress(TurnwrightError):
            sight = await watchdog.look(self.temporal, workflow_id)
            if not sight.running:
                return await watchdog.ended(self.temporal, sight)
        return TurnwrightError(
            Code.SESSION_EXISTS,
            f"session {session_id!r} exists already",
            where=workflow_id,
            accepted="another id, or `submit` to this session",
        )

    async def _in_force(self, session_id: str, revision: int, wait_s: float) -> int | None:
        deadline = asyncio.get_running_loop().time() + wait_s
        while (view := await self.state(session_id)).revision < revision:
            if view.status == "ended":
                raise TurnwrightError(
                    Code.SESSION_ENDED, "the session ended first", where=_session(session_id)
                )
            if asyncio.get_running_loop().time() > deadline:
                return None
            await asyncio.sleep(_POLL_S)
        for notice in view.notices:
            if notice.refused == revision:
                raise failures.split(notice.message, notice.code, _session(session_id))
        return revision

    async def _listed(self) -> list[SessionSummary]:
        found: list[SessionSummary] = []
        query = f"WorkflowType = '{names.SESSION}'"
        try:
            async for known in self.temporal.list_workflows(query, limit=100, rpc_timeout=watchdog.RPC):
                ref = parse_workflow_id(known.id)
                if ref and ref.kind == "session":
                    status = known.typed_search_attributes.get(attributes.STATUS) or "unknown"
                    found.append(SessionSummary(session_id=ref.parts[0], status=status))
        except TemporalError as error:
            raise failures.named(error, f"namespace {self.temporal.namespace}") from None
        return found

    async def _search(self, turn: str) -> str | None:
        if not _TURN_ID.match(turn):
            return None
        query = f"{names.ATTRIBUTE_TURN} = '{turn}' AND WorkflowType = '{names.TURN}'"
        try:
            async for known in self.temporal.list_workflows(query, limit=1, rpc_timeout=watchdog.RPC):
                return known.id
        except TemporalError as error:
            raise failures.named(error, f"turn {turn}") from None
        return None


def _attributes(session_id: str) -> TypedSearchAttributes:
    return TypedSearchAttributes(
        [
            SearchAttributePair(attributes.SESSION, session_id),
            SearchAttributePair(attributes.STATUS, "opening"),
        ]
    )


def _resolve(session_id: str, ref: str, decision: str, note: str, actor: str) -> wire.Resolve:
    with placed(_session(session_id)):
        fields = {"ref": check_id(ref, "ref"), "decision": decision}
        for name, text in (("note", note), ("actor", actor)):
            fields |= {name: check_text(text, name)} if text else {}
        return built(wire.Resolve, fields)


def _session(session_id: str) -> str:
    return session_workflow(check_id(session_id, "session"))


def _plain_turn(turn: str) -> str:
    ref = parse_workflow_id(turn)
    return ref.parts[1] if ref and ref.kind == "turn" else turn
