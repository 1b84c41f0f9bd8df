"""Packages that are switched off for every session from now on."""

from __future__ import annotations

from sqlalchemy import select

from store import rows
from store.connection import Connection
from store.tables import switches


async def switch(conn: Connection, package_id: str, *, enabled: bool, now: float | None = None) -> None:
    """Switch a package on or off."""
    values = {"package_id": package_id, "enabled": enabled, "changed_at": rows.moment(now)}
    await rows.upsert(conn, switches, values)


async def disabled(conn: Connection) -> frozenset[str]:
    """Ids of the packages that are switched off."""
    statement = select(switches.c.package_id).where(switches.c.enabled.is_(False))
    return frozenset((await conn.execute(statement)).scalars())
