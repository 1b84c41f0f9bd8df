"""Accepted actions, the turns they become, and how each turn ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update

from kernel.errors import Code, TurnwrightError
from store import rows
from store.connection import Connection
from store.runs import Run, list_runs
from store.tables import actions, turns

__all__ = [
    "Action",
    "Run",
    "Turn",
    "accept_action",
    "close_turn",
    "get_action",
    "get_receipt",
    "get_turn",
    "list_runs",
    "list_turns",
    "open_turn",
    "require_turn",
]


@dataclass(frozen=True)
class Action:
    """What a player or a client asked for. `runtime_id`: the manual runtime of a `run`."""

    turn_id: str
    session_id: str
    action_id: str
    origin: str
    text: str
    payload: Any
    runtime_id: str | None
    created_at: float


@dataclass(frozen=True)
class Turn:
    """A turn as stored.

    Attributes:
        generation: frozen when the turn opened: active packages, bindings, plan.
        status: open, committed, rejected or stopped.
        receipt: the end as JSON; None while open.
    """

    turn_id: str
    session_id: str
    action_id: str
    origin: str
    logical_turn: int
    generation: Any
    status: str
    receipt: Any
    created_at: float
    ended_at: float | None


_TURN = rows.columns(Turn, turns).where(*rows.given(turns, "turn_id"))
_RECEIPT = select(turns.c.receipt).where(*rows.given(turns, "turn_id"))
_ACTION = rows.columns(Action, actions).where(*rows.given(actions, "turn_id"))


async def accept_action(
    conn: Connection,
    *,
    session_id: str,
    action_id: str,
    turn_id: str,
    origin: str = "player",
    text: str = "",
    payload: Any = None,
    runtime_id: str | None = None,
    now: float | None = None,
) -> bool:
    """Store an action once; False when it was stored before.

    Raises:
        TurnwrightError: `store.conflict` when the turn id belongs to another action.
    """
    values = {
        "turn_id": turn_id,
        "session_id": session_id,
        "action_id": action_id,
        "origin": origin,
        "text": text,
        "payload": payload,
        "runtime_id": runtime_id,
        "created_at": rows.moment(now),
    }
    if await rows.insert_if_absent(conn, actions, values):
        return True
    same = (actions.c.session_id == session_id) & (actions.c.action_id == action_id)
    if (await conn.execute(select(actions.c.turn_id).where(same))).first() is None:
        raise TurnwrightError(Code.STORE_CONFLICT, f"turn {turn_id} belongs to another action")
    return False


async def get_action(conn: Connection, turn_id: str) -> Action | None:
    """The action that a turn answers, or None."""
    return await rows.one(conn, Action, _ACTION, turn_id=turn_id)


async def open_turn(
    conn: Connection,
    *,
    turn_id: str,
    session_id: str,
    action_id: str,
    origin: str,
    logical_turn: int,
    generation: Any,
    now: float | None = None,
) -> tuple[Turn, bool]:
    """Open a turn once: the row that stands, with the generation first frozen, and whether it is new."""
    values: dict[str, Any] = {
        "turn_id": turn_id,
        "session_id": session_id,
        "action_id": action_id,
        "origin": origin,
        "logical_turn": logical_turn,
        "generation": generation,
        "status": "open",
        "created_at": rows.moment(now),
    }
    if await rows.insert_if_absent(conn, turns, values):
        return Turn(**values, receipt=None, ended_at=None), True
    return await require_turn(conn, turn_id), False


async def get_turn(conn: Connection, turn_id: str) -> Turn | None:
    """The turn, or None."""
    return await rows.one(conn, Turn, _TURN, turn_id=turn_id)


async def require_turn(conn: Connection, turn_id: str) -> Turn:
    """The turn; raises `turn.unknown`."""
    turn = await get_turn(conn, turn_id)
    if turn is None:
        raise TurnwrightError(Code.TURN_UNKNOWN, f"there is no turn {turn_id!r}")
    return turn


async def get_receipt(conn: Connection, turn_id: str) -> Any:
    """How a turn ended, as JSON; None while it is open."""
    return (await conn.execute(_RECEIPT, {"turn_id": turn_id})).scalar()


async def close_turn(
    conn: Connection, turn_id: str, *, status: str, receipt: Any, now: float | None = None
) -> bool:
    """End an open turn; a turn that has ended keeps its receipt, and the answer is no."""
    changes = {"status": status, "receipt": receipt, "ended_at": rows.moment(now)}
    still_open = (turns.c.turn_id == turn_id) & (turns.c.status == "open")
    return await rows.affected(conn, update(turns).where(still_open).values(**changes)) == 1


async def list_turns(
    conn: Connection, session_id: str, *, limit: int = 50, before: float | None = None
) -> list[Turn]:
    """Turns of a session, newest first. `before`: Unix seconds, for the next page."""
    statement = rows.columns(Turn, turns).where(turns.c.session_id == session_id)
    if before is not None:
        statement = statement.where(turns.c.created_at < before)
    newest = statement.order_by(turns.c.created_at.desc(), turns.c.turn_id.desc())
    return await rows.many(conn, Turn, newest.limit(limit))


async def list_open(conn: Connection, session_id: str) -> list[Turn]:
    """Turns of a session that have not ended, oldest first."""
    still_open = (turns.c.session_id == session_id) & (turns.c.status == "open")
    oldest = rows.columns(Turn, turns).where(still_open).order_by(turns.c.created_at, turns.c.turn_id)
    return await rows.many(conn, Turn, oldest)
