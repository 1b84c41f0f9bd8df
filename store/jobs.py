"""Detached and background runs: created with the turn that left them, ended once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import update

from store import rows
from store.connection import Connection
from store.tables import jobs

OPEN = ("queued", "running")
"""States of a job that has not ended."""


@dataclass(frozen=True)
class Job:
    """A job as stored. `options` and `usage` are JSON of the payload types of those names."""

    job_id: str
    session_id: str
    turn_id: str
    runtime_id: str
    status: str
    settle: bool
    options: Any
    reason: str
    message: str
    usage: Any
    created_at: float
    ended_at: float | None


async def create(
    conn: Connection,
    *,
    job_id: str,
    session_id: str,
    turn_id: str,
    runtime_id: str,
    settle: bool = False,
    options: Any = None,
    status: str = "queued",
    now: float | None = None,
) -> tuple[Job, bool]:
    """Create a job once: the row that stands, and whether it is new."""
    values = {"job_id": job_id, "session_id": session_id, "turn_id": turn_id, "runtime_id": runtime_id}
    values |= {"status": status, "reason": "", "message": ""}
    more = {"settle": settle, "options": options, "created_at": rows.moment(now)}
    new = await rows.insert_if_absent(conn, jobs, values | more)
    job = await get(conn, job_id)
    if job is None:
        raise RuntimeError("a job that was just stored cannot be read")
    return job, new


async def get(conn: Connection, job_id: str) -> Job | None:
    """The job, or None."""
    return await rows.one(conn, Job, rows.columns(Job, jobs).where(jobs.c.job_id == job_id))


async def list_jobs(
    conn: Connection, session_id: str, *, statuses: Sequence[str] | None = None, limit: int = 100
) -> list[Job]:
    """Jobs of a session, newest first."""
    statement = rows.columns(Job, jobs).where(jobs.c.session_id == session_id)
    if statuses is not None:
        statement = statement.where(jobs.c.status.in_(list(statuses)))
    newest = statement.order_by(jobs.c.created_at.desc(), jobs.c.job_id)
    return await rows.many(conn, Job, newest.limit(limit))


async def start(conn: Connection, job_id: str) -> bool:
    """Mark a queued job as running."""
    queued = (jobs.c.job_id == job_id) & (jobs.c.status == "queued")
    return await rows.affected(conn, update(jobs).where(queued).values(status="running")) == 1


async def end(
    conn: Connection,
    job_id: str,
    *,
    status: str,
    reason: str = "",
    message: str = "",
    usage: Any = None,
    now: float | None = None,
) -> bool:
    """End a job; False when it has ended before, and nothing changes then."""
    changes = {"status": status, "reason": reason, "message": message, "usage": usage}
    still_open = (jobs.c.job_id == job_id) & jobs.c.status.in_(OPEN)
    statement = update(jobs).where(still_open).values(**changes, ended_at=rows.moment(now))
    return await rows.affected(conn, statement) == 1


async def end_all(
    conn: Connection,
    session_id: str,
    *,
    status: str,
    reason: str,
    message: str,
    now: float | None = None,
) -> int:
    """End every job of a session that has not ended; returns how many."""
    still_open = (jobs.c.session_id == session_id) & jobs.c.status.in_(OPEN)
    changes = {"status": status, "reason": reason, "message": message, "ended_at": rows.moment(now)}
    return await rows.affected(conn, update(jobs).where(still_open).values(**changes))
