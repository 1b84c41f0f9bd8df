"""Brings a database to the schema that this code reads and writes."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, text

from kernel.errors import Code, TurnwrightError
from store import address
from store.engine import HEAD, Store, database, read_revision, unreachable

__all__ = ["HEAD", "upgrade"]

_LOCK = 0x7475726E
"""Advisory lock of a migration in PostgreSQL."""


async def upgrade(url: str) -> str:
    """Migrate to `HEAD`, creating the SQLite file and its folder when they are missing.

    Everything happens in one transaction under a lock: of two processes that migrate at once, one waits
    and finds nothing left to do.

    Returns:
        The revision reached.

    Raises:
        TurnwrightError: `config.invalid`, `store.unreachable`, or `store.not-migrated` when the database is
            of a later version than this code.
    """
    parsed = address.parse(url)
    file = address.sqlite_file(parsed)
    if file is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        except OSError as error:
            raise unreachable(parsed, error) from None
    reached = await Store.open(url, check=False)
    await reached.close()
    await _migrate(parsed)
    return HEAD


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for one open transaction; nothing is read from or written to the outside."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


async def _migrate(url: URL) -> None:
    target = database(url)
    try:
        async with target.write() as conn:
            if conn.dialect.name == "postgresql":
                await conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            revision = await read_revision(conn)
            if revision == HEAD:
                return
            if revision is not None and revision > HEAD:
                raise TurnwrightError(
                    Code.STORE_NOT_MIGRATED,
                    f"the database has schema revision {revision}, which is later than {HEAD}",
                    where=address.masked(url),
                    accepted=f"revision {HEAD} or earlier",
                    details={"current": revision, "expected": HEAD},
                )
            await conn.run_sync(lambda connection: command.upgrade(configuration(connection), HEAD))
    finally:
        await target.close()
