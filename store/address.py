"""Database URLs: which are accepted, and how each is printed without its password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from kernel.errors import Code, TurnwrightError

ACCEPTED = "sqlite:///path/to/file.db or postgresql://user:password@host:5432/name"
CONNECT_S = 4.0
"""Seconds after which a database that does not answer counts as unreachable."""

_SQLITE = {"sqlite"}
_POSTGRES = {"postgresql", "postgresql+asyncpg"}
_QUERY = {"host", "port", "sslmode", "application_name"}


def parse(url: str) -> URL:
    """The URL with its driver.

    Raises:
        TurnwrightError: `config.invalid` for another scheme, a missing name or an unknown parameter.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _refused("the database URL cannot be read") from None
    if parsed.drivername in _SQLITE:
        return _sqlite(parsed)
    if parsed.drivername in _POSTGRES:
        return _postgres(parsed)
    raise _refused(f"databases of the kind {parsed.drivername!r} are not supported")


def masked(url: URL) -> str:
    """The URL as people may see it: a password reads `***`, the driver is not named."""
    plain = url.set(drivername=url.drivername.split("+")[0])
    return plain.render_as_string(hide_password=True)


def sqlite_file(url: URL) -> Path | None:
    """The database file of a SQLite URL, or None for PostgreSQL."""
    return Path(url.database or "") if url.drivername in _SQLITE else None


def missing_file(url: URL) -> Path | None:
    """The SQLite file that a URL names where there is none."""
    file = sqlite_file(url)
    return None if file is None or file.exists() else file


def connect_arguments(url: URL) -> dict[str, Any]:
    """What the driver takes beside the URL."""
    if url.drivername in _SQLITE:
        return {}
    name = url.query.get("application_name", "turnwright")
    arguments: dict[str, Any] = {"timeout": CONNECT_S, "server_settings": {"application_name": name}}
    if "sslmode" in url.query:
        arguments["ssl"] = url.query["sslmode"]
    return arguments


def driver_url(url: URL) -> URL:
    """The URL without the parameters that `connect_arguments` carries."""
    return url.difference_update_query(["sslmode", "application_name"])


def _sqlite(url: URL) -> URL:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise _refused("a SQLite database must be a file: several processes share it")
    if url.query or url.host:
        raise _refused("a SQLite URL takes three slashes and a path, and no parameters")
    return url


def _postgres(url: URL) -> URL:
    unknown = sorted(set(url.query) - _QUERY)
    if unknown:
        raise _refused(f"the database URL has an unknown parameter {unknown[0]!r}", ", ".join(sorted(_QUERY)))
    if not url.database:
        raise _refused("the database URL names no database")
    return url.set(drivername="postgresql+asyncpg")


def _refused(message: str, accepted: str = ACCEPTED) -> TurnwrightError:
    return TurnwrightError(Code.CONFIG_INVALID, message, where="database URL", accepted=accepted)
