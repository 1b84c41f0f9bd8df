"""Who said that the code of a package may run. Spec: plugin-model §25; DECISIONS 24b, 25.

A grant names a subject: the digest of a package's content, or a folder whose edits are followed. It holds for
one session or for all of them, until it is revoked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select, update

from store import rows
from store.connection import Connection
from store.tables import grants

EVERYWHERE = ""
"""The session of a grant for all sessions."""

_FOLDER = "folder:"


@dataclass(frozen=True)
class Grant:
    """One grant; `session_id` is `EVERYWHERE` where it holds for all sessions."""

    subject: str
    session_id: str
    package_id: str
    granted_by: str
    granted_at: float
    revoked_at: float | None

    @property
    def folder(self) -> Path | None:
        """The folder that is followed, where the subject is one."""
        return Path(self.subject.removeprefix(_FOLDER)) if self.subject.startswith(_FOLDER) else None


def followed(folder: Path) -> str:
    """The subject that stands for whatever a folder holds."""
    return f"{_FOLDER}{folder.resolve()}"


async def give(
    conn: Connection,
    *,
    subject: str,
    package_id: str,
    session_id: str = EVERYWHERE,
    granted_by: str = "",
    now: float | None = None,
) -> None:
    """Grant, or grant again what was revoked."""
    values = {"subject": subject, "session_id": session_id, "package_id": package_id}
    granted = {"granted_by": granted_by, "granted_at": rows.moment(now), "revoked_at": None}
    await rows.upsert(conn, grants, {**values, **granted})


async def give_once(
    conn: Connection, *, subject: str, package_id: str, session_id: str = EVERYWHERE, granted_by: str
) -> None:
    """Grant what is not granted yet; what was revoked stays revoked."""
    values = {"subject": subject, "session_id": session_id, "package_id": package_id}
    granted = {"granted_by": granted_by, "granted_at": rows.moment(None), "revoked_at": None}
    await rows.insert_if_absent(conn, grants, {**values, **granted})


async def revoke(
    conn: Connection, package_id: str, *, session_id: str | None = None, now: float | None = None
) -> int:
    """Take back what was granted to a package, of one session or of all; returns how many grants ended."""
    statement = update(grants).where(grants.c.package_id == package_id, grants.c.revoked_at.is_(None))
    if session_id is not None:
        statement = statement.where(grants.c.session_id == session_id)
    return await rows.affected(conn, statement.values(revoked_at=rows.moment(now)))


async def in_force(conn: Connection, subjects: Collection[str], session_id: str | None) -> frozenset[str]:
    """The subjects that are granted to a session; to any session where None is given."""
    statement = select(grants.c.subject).where(
        grants.c.subject.in_(sorted(subjects)), grants.c.revoked_at.is_(None)
    )
    if session_id is not None:
        statement = statement.where(grants.c.session_id.in_([EVERYWHERE, session_id]))
    return frozenset((await conn.execute(statement)).scalars())


async def list_all(conn: Connection, *, package_id: str | None = None) -> list[Grant]:
    """Every grant, also a revoked one, by package."""
    statement = rows.columns(Grant, grants)
    if package_id is not None:
        statement = statement.where(grants.c.package_id == package_id)
    ordered = statement.order_by(grants.c.package_id, grants.c.granted_at, grants.c.subject)
    return await rows.many(conn, Grant, ordered)
