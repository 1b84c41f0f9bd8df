"""The package store: every version of every package that a run has started with, by digest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select

from kernel.errors import Code, TurnwrightError
from store import package_files, rows
from store.connection import Connection
from store.package_files import Folder, digest, materialise, pack, read_folder, unpack
from store.tables import packages

__all__ = [
    "Folder",
    "Package",
    "digest",
    "get",
    "list_all",
    "load",
    "materialise",
    "pack",
    "put",
    "read_folder",
    "unknown",
    "unpack",
    "unpacked",
]


@dataclass(frozen=True)
class Package:
    """A stored package without its content. `size`: bytes of its files."""

    digest: str
    package_id: str
    version: str
    size: int
    created_at: float


async def put(
    conn: Connection,
    package_id: str,
    version: str,
    files: Mapping[str, bytes],
    *,
    now: float | None = None,
) -> str:
    """Store a package unless it is there; returns its digest.

    Raises:
        TurnwrightError: `package.path` or `package.size`.
    """
    package_files.check(files)
    key = await asyncio.to_thread(digest, files)
    if await get(conn, key) is not None:
        return key
    values = {"digest": key, "package_id": package_id, "version": version}
    content = {"size": sum(map(len, files.values())), "archive": await asyncio.to_thread(pack, files)}
    await rows.insert_if_absent(conn, packages, {**values, **content, "created_at": rows.moment(now)})
    return key


async def get(conn: Connection, key: str) -> Package | None:
    """What is known of a digest, or None."""
    return await rows.one(conn, Package, rows.columns(Package, packages).where(packages.c.digest == key))


async def load(conn: Connection, key: str) -> dict[str, bytes]:
    """The files of a package, checked against the digest.

    Raises:
        TurnwrightError: `package.unknown`, `package.digest-mismatch` when the stored content was altered,
            or what `unpack` raises.
    """
    archive = (await conn.execute(select(packages.c.archive).where(packages.c.digest == key))).scalar()
    if archive is None:
        raise unknown(key)
    return await asyncio.to_thread(unpacked, archive, key)


def unpacked(archive: bytes, key: str) -> dict[str, bytes]:
    """The files of an archive, which must be those of the digest; raises as `load`."""
    files = unpack(archive)
    if digest(files) != key:
        raise package_files.mismatch(key, "the stored package was altered")
    return files


def unknown(key: str) -> TurnwrightError:
    """The refusal of a digest that is not kept."""
    return TurnwrightError(Code.PACKAGE_UNKNOWN, "the package store has no such package", where=key)


async def list_all(conn: Connection, *, package_id: str | None = None, limit: int = 500) -> list[Package]:
    """Stored packages by id, the newest of each first."""
    statement = rows.columns(Package, packages)
    if package_id is not None:
        statement = statement.where(packages.c.package_id == package_id)
    ordered = statement.order_by(packages.c.package_id, packages.c.created_at.desc(), packages.c.digest)
    return await rows.many(conn, Package, ordered.limit(limit))
