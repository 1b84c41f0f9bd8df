"""What a client reads from the store: sessions, turns, inbox, jobs, live text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernel.errors import Code, TurnwrightError
from kernel.wire.turn import PlanInput, TurnResult
from kernel.wire.usage import UsageTotals
from store import approvals, calls, jobs, messages, sessions, stream, tool_results, transcripts, turns
from store.approvals import Approval
from store.connection import Connection
from store.engine import Store
from store.jobs import Job
from store.messages import Message
from store.sessions import Session
from store.stream import Piece, StreamOffset
from store.turns import Action, Run, Turn


@dataclass(frozen=True)
class ToolUse:
    """A tool call of an agent's reply, and its answer once there is one.

    Attributes:
        ok: None while it waits or runs.
    """

    runtime_id: str
    step: int
    index: int
    tool: str
    arguments: str
    ok: bool | None = None
    code: str = ""
    message: str = ""


@dataclass(frozen=True)
class TurnRecord:
    """A turn as the store knows it.

    Attributes:
        action: what was asked for.
        status: `waiting` until the turn opens, `running`, then as its result says; `failed` or `terminated`
            where it ended without one.
        turn: None until the turn has opened.
        result: None until it has ended.
        usage: what its model calls cost so far, its jobs included.
    """

    action: Action
    status: str = "waiting"
    turn: Turn | None = None
    result: TurnResult | None = None
    runs: tuple[Run, ...] = ()
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    jobs: tuple[Job, ...] = ()
    usage: UsageTotals = field(default_factory=UsageTotals)


class History:
    """Reads of one store, or the reason why there is none."""

    def __init__(self, store: Store | None, problem: TurnwrightError | None = None) -> None:
        self._store = store
        self._problem = problem

    @classmethod
    async def open(cls, url: str) -> History:
        """Open the store; one that cannot be opened is told about by the first read."""
        try:
            return cls(await Store.open(url))
        except TurnwrightError as error:
            return cls(None, error)

    @property
    def available(self) -> bool:
        """Whether there is a store to read."""
        return self._store is not None

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            TurnwrightError: why it could not be opened.
        """
        if self._store is None:
            raise self._problem or TurnwrightError(Code.STORE_UNREACHABLE, "no store is open")
        return self._store

    async def close(self) -> None:
        """Close the store's connections."""
        if self._store:
            await self._store.close()

    async def sessions(self) -> list[Session]:
        """Sessions, the last changed first."""
        async with self.store.read() as conn:
            return await sessions.list_all(conn)

    async def session(self, session_id: str) -> Session:
        """A session as stored; raises `session.unknown`."""
        async with self.store.read() as conn:
            return await sessions.require(conn, session_id)

    async def knows(self, session_id: str) -> bool:
        """Whether there is, or was, such a session."""
        async with self.store.read() as conn:
            return await sessions.get(conn, session_id) is not None

    async def usage(self, session_id: str) -> UsageTotals:
        """What a session's model calls cost so far."""
        async with self.store.read() as conn:
            return await calls.totals_of_session(conn, session_id)

    async def inbox(self, session_id: str | None = None) -> list[Approval]:
        """Open questions, oldest first."""
        async with self.store.read() as conn:
            return await approvals.list_approvals(conn, session_id=session_id)

    async def approval(self, ref: str) -> Approval:
        """One question.

        Raises:
            TurnwrightError: `approval.unknown`.
        """
        async with self.store.read() as conn:
            found = await approvals.get(conn, ref)
        if found is None:
            accepted = "a ref that `turnwright inbox` lists"
            raise TurnwrightError(Code.APPROVAL_UNKNOWN, f"no approval {ref!r} is known", accepted=accepted)
        return found

    async def jobs(self, session_id: str | None = None) -> list[Job]:
        """Jobs of a session, or of the last sessions, newest first."""
        async with self.store.read() as conn:
            owners = (
                [session_id]
                if session_id is not None
                else [s.session_id for s in await sessions.list_all(conn)]
            )
            found = [job for owner in owners for job in await jobs.list_jobs(conn, owner)]
        return sorted(found, key=lambda job: job.created_at, reverse=True)

    async def job(self, job_id: str) -> Job | None:
        """One job, or None."""
        async with self.store.read() as conn:
            return await jobs.get(conn, job_id)

    async def owner(self, turn_id: str) -> str | None:
        """The session of a turn, or None when no such action was stored."""
        async with self.store.read() as conn:
            action = await turns.get_action(conn, turn_id)
        return action.session_id if action else None

    async def turns(self, session_id: str, limit: int = 20) -> list[Turn]:
        """Turns of a session, newest first."""
        async with self.store.read() as conn:
            return await turns.list_turns(conn, session_id, limit=limit)

    async def result(self, turn_id: str) -> TurnResult | None:
        """The receipt of a turn that has ended, or None; None too where there is no store."""
        if self._store is None:
            return None
        async with self.store.read() as conn:
            turn = await turns.get_turn(conn, turn_id)
        return _result(turn)

    async def plan(self, turn_id: str) -> PlanInput | None:
        """What the turn's graph was built from, or None before it opened."""
        async with self.store.read() as conn:
            turn = await turns.get_turn(conn, turn_id)
        return PlanInput.model_validate(turn.generation["plan"]) if turn else None

    async def turn(self, turn_id: str) -> TurnRecord:
        """Everything about one turn.

        Raises:
            TurnwrightError: `turn.unknown`.
        """
        async with self.store.read() as conn:
            action = await turns.get_action(conn, turn_id)
            if action is None:
                raise TurnwrightError(Code.TURN_UNKNOWN, f"there is no turn {turn_id!r}")
            turn = await turns.get_turn(conn, turn_id)
            runs = await turns.list_runs(conn, turn_id)
            tools = await _tools(conn, turn_id, [run.runtime_id for run in runs])
            own_jobs = [j for j in await jobs.list_jobs(conn, action.session_id) if j.turn_id == turn_id]
            result = _result(turn)
            return TurnRecord(
                action=action,
                status=result.status if result else "running" if turn else "waiting",
                turn=turn,
                result=result,
                runs=tuple(runs),
                messages=tuple(await messages.of_turn(conn, action.session_id, turn_id)),
                tools=tuple(tools),
                jobs=tuple(own_jobs),
                usage=await calls.totals_of_turn(conn, turn_id),
            )

    async def tools(self, owner_id: str, runtime_ids: Sequence[str]) -> list[ToolUse]:
        """The tool calls of a turn's agents so far."""
        async with self.store.read() as conn:
            return await _tools(conn, owner_id, runtime_ids)

    def stream(self, owner_id: str, after: StreamOffset | None = None) -> AsyncIterator[Piece]:
        """The live text of a turn or a job, from its start or from an offset, until its end."""
        return stream.follow(self.store, owner_id, after=after)


async def _tools(conn: Connection, owner_id: str, runtime_ids: Sequence[str]) -> list[ToolUse]:
    found: list[ToolUse] = []
    for runtime_id in runtime_ids:
        answers = {
            (answer.step, answer.idx): answer
            for answer in await tool_results.list_run(conn, owner_id, runtime_id)
        }
        for entry in await transcripts.load(conn, owner_id, runtime_id):
            asked = entry.message.get("tool_calls", ()) if entry.role == "assistant" else ()
            for index, call in enumerate(asked):
                answer = answers.get((entry.step, index))
                found.append(_tool(runtime_id, entry.step, index, call, answer))
    return found


def _tool(
    runtime_id: str, step: int, index: int, call: Mapping[str, Any], answer: tool_results.ToolResult | None
) -> ToolUse:
    arguments = call.get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    use = ToolUse(runtime_id, step, index, str(call.get("name", "")), text)
    if answer is None:
        return use
    return replace(use, ok=answer.ok, code=answer.code or "", message=answer.message)


def _result(turn: Turn | None) -> TurnResult | None:
    return TurnResult.model_validate(turn.receipt) if turn and turn.receipt is not None else None
