"""Where the content of packages is kept, by digest: a seam with a driver for each kind of place.

    PackageContents     what a driver does
    DatabaseContents    in the table `packages` of the store
    DirectoryContents   archives in a folder that every worker reaches

A driver never changes what stands under a digest, and gives back nothing that is not the digest's content.
`tests/store/test_contents.py` is what every driver must pass.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from kernel.errors import Code, TurnwrightError
from store import package_files, packages
from store.engine import Store


class PackageContents(Protocol):
    """Keeps the files of packages."""

    async def put(self, package_id: str, version: str, files: Mapping[str, bytes]) -> str:
        """Keep a package's files unless they are there; returns their digest.

        Raises:
            TurnwrightError: `package.path`, `package.size`; `store.unreachable`.
        """

    async def load(self, digest: str) -> dict[str, bytes]:
        """The files of a digest, checked against it.

        Raises:
            TurnwrightError: `package.unknown`, `package.digest-mismatch`, `package.invalid`;
                `store.unreachable`.
        """


class DatabaseContents:
    """In the store's own database."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def put(self, package_id: str, version: str, files: Mapping[str, bytes]) -> str:
        """Keep a package's files unless they are there; returns their digest."""
        key = await asyncio.to_thread(package_files.digest, files)
        async with self.store.read() as conn:
            if await packages.get(conn, key) is not None:
                return key
        async with self.store.write() as conn:
            return await packages.put(conn, package_id, version, files)

    async def load(self, digest: str) -> dict[str, bytes]:
        """The files of a digest, checked against it."""
        async with self.store.read() as conn:
            return await packages.load(conn, digest)


class DirectoryContents:
    """In a folder: one archive for each digest, written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, package_id: str, version: str, files: Mapping[str, bytes]) -> str:
        """Keep a package's files unless they are there; returns their digest."""
        return await asyncio.to_thread(self._put, files)

    async def load(self, digest: str) -> dict[str, bytes]:
        """The files of a digest, checked against it."""
        return await asyncio.to_thread(self._load, digest)

    def _put(self, files: Mapping[str, bytes]) -> str:
        package_files.check(files)
        digest = package_files.digest(files)
        file = self._file(digest)
        if file.exists():
            return digest
        draft = file.with_name(f".draft-{uuid4().hex}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with draft.open("xb") as writing:
                writing.write(package_files.pack(files))
                writing.flush()
                os.fsync(writing.fileno())  # a session is written next that names this digest
            draft.replace(file)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise self._unreachable(error) from error
        return digest

    def _load(self, digest: str) -> dict[str, bytes]:
        try:
            archive = self._file(digest).read_bytes()
        except FileNotFoundError:
            raise packages.unknown(digest) from None
        except OSError as error:
            raise self._unreachable(error) from error
        return packages.unpacked(archive, digest)

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest.replace(':', '-')}.zip"

    def _unreachable(self, error: OSError) -> TurnwrightError:
        message = f"the folder of package contents cannot be used: {error.strerror}"
        return TurnwrightError(Code.STORE_UNREACHABLE, message, where=str(self._folder))


def contents(store: Store, place: str) -> PackageContents:
    """The driver of a place: `database`, or the path of a folder."""
    return DatabaseContents(store) if place == "database" else DirectoryContents(Path(place))
