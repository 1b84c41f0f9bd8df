"""Session records, and the lock under which everything of a session commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import update as sql_update

from kernel.errors import Code, TurnwrightError
from store import rows
from store.connection import Connection
from store.tables import sessions


@dataclass(frozen=True)
class Session:
    """A session as stored.

    Attributes:
        incarnation: names one life of the session; a turn of another life may not commit.
        packages: the packages asked for; None asks for every bundled one.
        active: the packages in force, each `{package_id, digest, version, reason}`.
        bindings: model slot or runtime id → slot that answers for it.
        revision: number of the last configuration in force.
        excluded: packages that the session will not have, whoever needs them.
        choices: contract → package that answers for it.
        settings: package → key → value that a player set.
        inactive: packages that were asked for and are not active, each `{package_id, code, message}`.
    """

    session_id: str
    incarnation: str
    status: str
    phase: str
    completed_player_turns: int
    packages: list[str] | None
    active: list[dict[str, str]]
    bindings: dict[str, str]
    locale: str
    revision: int
    excluded: list[str]
    choices: dict[str, str]
    settings: dict[str, dict[str, Any]]
    inactive: list[dict[str, str]]
    created_at: float
    updated_at: float


async def get(conn: Connection, session_id: str) -> Session | None:
    """The session, or None."""
    return await rows.one(conn, Session, _by_id(session_id))


async def require(conn: Connection, session_id: str) -> Session:
    """The session; raises `session.unknown`."""
    return _known(await get(conn, session_id), session_id)


async def create(
    conn: Connection,
    *,
    session_id: str,
    incarnation: str,
    packages: Sequence[str] | None = None,
    active: Sequence[Mapping[str, str]] = (),
    inactive: Sequence[Mapping[str, str]] = (),
    excluded: Sequence[str] = (),
    choices: Mapping[str, str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    bindings: Mapping[str, str] | None = None,
    locale: str = "en",
    phase: str = "setup",
    now: float | None = None,
) -> tuple[Session, bool]:
    """Create the session, or find the one that has the id; tell which."""
    time = rows.moment(now)
    values = {
        "session_id": session_id,
        "incarnation": incarnation,
        "status": "active",
        "phase": phase,
        "completed_player_turns": 0,
        "packages": None if packages is None else list(packages),
        "active": [dict(package) for package in active],
        "bindings": dict(bindings or {}),
        "locale": locale,
        "revision": 0,
        "excluded": list(excluded),
        "choices": dict(choices or {}),
        "settings": {name: dict(values) for name, values in (settings or {}).items()},
        "inactive": [dict(package) for package in inactive],
        "created_at": time,
        "updated_at": time,
    }
    new = await rows.insert_if_absent(conn, sessions, values)
    return await require(conn, session_id), new


async def update(conn: Connection, session_id: str, *, now: float | None = None, **changes: Any) -> Session:
    """Change the named fields of a session; raises `session.unknown`."""
    values = {**changes, "updated_at": rows.moment(now)}
    await conn.execute(sql_update(sessions).where(sessions.c.session_id == session_id).values(**values))
    return await require(conn, session_id)


async def list_all(conn: Connection, *, status: str | None = None, limit: int = 100) -> list[Session]:
    """Sessions, the last changed first."""
    statement = rows.columns(Session, sessions).order_by(sessions.c.updated_at.desc(), sessions.c.session_id)
    if status is not None:
        statement = statement.where(sessions.c.status == status)
    return await rows.many(conn, Session, statement.limit(limit))


async def lock(conn: Connection, session_id: str) -> Session:
    """Hold the session until the transaction ends, and read it; raises `session.unknown`.

    Take it first in a transaction: whoever holds another lock and then waits for this one can deadlock.
    """
    # SQLite leaves FOR UPDATE out: its write transaction holds the whole file.
    return _known(await rows.one(conn, Session, _by_id(session_id).with_for_update()), session_id)


def _by_id(session_id: str) -> Any:
    return rows.columns(Session, sessions).where(sessions.c.session_id == session_id)


def _known(session: Session | None, session_id: str) -> Session:
    if session is None:
        raise TurnwrightError(Code.SESSION_UNKNOWN, f"there is no session {session_id!r}")
    return session
