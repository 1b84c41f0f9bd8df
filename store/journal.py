"""The effect journal: what a function bought or changed, so that its retry replays instead of paying again.

Spec: DECISIONS 16. The key is the content of the call and its repeat number within the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import update

from store import rows
from store.connection import Connection
from store.tables import journal


@dataclass(frozen=True)
class Effect:
    """One journaled call.

    Attributes:
        status: sent, or done with a `result`.
        attempts: how often it was sent; above 1, earlier ones were lost with their worker.
    """

    owner_id: str
    runtime_id: str
    content_key: str
    repeat: int
    kind: str
    status: str
    result: Any
    attempts: int


async def find(
    conn: Connection, owner_id: str, runtime_id: str, content_key: str, repeat: int
) -> Effect | None:
    """The journaled call, or None."""
    where = _key(owner_id, runtime_id, content_key, repeat)
    return await rows.one(conn, Effect, rows.columns(Effect, journal).where(*where))


async def begin(
    conn: Connection, owner_id: str, runtime_id: str, content_key: str, repeat: int, *, kind: str
) -> Effect:
    """Record that a call is about to be made; a call that is done comes back with its result.

    Commit before making the call.
    """
    values = {"owner_id": owner_id, "runtime_id": runtime_id, "content_key": content_key, "repeat": repeat}
    new = {**values, "kind": kind, "status": "sent", "result": None, "attempts": 1}
    if not await rows.insert_if_absent(conn, journal, new):
        again = update(journal).where(*_key(owner_id, runtime_id, content_key, repeat))
        again = again.where(journal.c.status == "sent").values(attempts=journal.c.attempts + 1)
        await conn.execute(again)
    return await _require(conn, owner_id, runtime_id, content_key, repeat)


async def finish(
    conn: Connection, owner_id: str, runtime_id: str, content_key: str, repeat: int, *, result: Any
) -> Effect:
    """Record the result of a call; the first result stands and is returned."""
    sent = update(journal).where(*_key(owner_id, runtime_id, content_key, repeat))
    await conn.execute(sent.where(journal.c.status == "sent").values(status="done", result=result))
    return await _require(conn, owner_id, runtime_id, content_key, repeat)


async def list_run(conn: Connection, owner_id: str, runtime_id: str) -> list[Effect]:
    """Every journaled call of a run."""
    own = (journal.c.owner_id == owner_id) & (journal.c.runtime_id == runtime_id)
    statement = rows.columns(Effect, journal).where(own)
    return await rows.many(conn, Effect, statement.order_by(journal.c.content_key, journal.c.repeat))


async def _require(conn: Connection, *key: Any) -> Effect:
    effect = await find(conn, *key)
    if effect is None:
        raise LookupError("the call was never begun")
    return effect


def _key(owner_id: str, runtime_id: str, content_key: str, repeat: int) -> tuple[Any, ...]:
    run = (journal.c.owner_id == owner_id, journal.c.runtime_id == runtime_id)
    return (*run, journal.c.content_key == content_key, journal.c.repeat == repeat)
