"""Packages that are being written: sessions follow what their folders hold. For `turnwright dev`.

    take         read the folders; what loads is what later turns run, what does not is told of
    watch        take again whenever the folders changed and are quiet again
    followed     the session with the packages that its next turn is to run

A turn that was opened keeps its digests, whatever happens to the folders.
Spec: plugin-model §30; DECISIONS 8.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from activities.catalog import Catalog, Source
from activities.configuring import Configuring
from kernel.errors import Code, TurnwrightError
from kernel.wire.session import Configure
from store.sessions import Session

QUIET_S: Final = 0.15
"""How long nothing may change before an edit is taken: an editor saves several files, and each in steps."""

_SKIPPED: Final = {"__pycache__", ".git"}
_log = logging.getLogger(__name__)


class Following:
    """Knows the newest content of every package folder that loads.

    Args:
        folders: where packages are being written; the bundled ones are not followed.
    """

    def __init__(self, catalog: Catalog, configuring: Configuring, folders: Sequence[Path]) -> None:
        self._catalog = catalog
        self._configuring = configuring
        self._folders = tuple(folders)
        self._sources: dict[str, Source] = {}
        self._present: frozenset[str] = frozenset()
        self._played: set[str] = set()
        self._taking = asyncio.Lock()

    async def watch(self) -> None:
        """Take every edit, until cancelled."""
        seen, changed = await asyncio.to_thread(self._stamps), False
        while True:
            await asyncio.sleep(QUIET_S)
            now = await asyncio.to_thread(self._stamps)
            if now != seen:
                seen, changed = now, True
            elif changed:
                with suppress(OSError):  # a file went away while it was read: look again
                    await self.take()
                    changed = False

    async def take(self) -> None:
        """Read the folders, and load what changed; what does not load leaves the former content in place."""
        async with self._taking:
            await self._take()

    async def _take(self) -> None:
        sources = await self._catalog.sources()
        self._present = await asyncio.to_thread(self._catalog.folder_names)
        known = {name: source for name, source in self._sources.items() if name in self._present}
        for name in sorted(self._sources.keys() - known.keys()):
            _log.warning("package %s: its folder is gone; sessions that play it cannot go on", name)
        for name in sorted(known.keys() - sources.keys()):
            _log.warning("package %s was edited and is broken; turns go on with what it was", name)
        for name, source in sorted(sources.items()):
            former = known.get(name)
            if former is None or former.digest != source.digest:
                known |= await self._loaded(source)
        self._sources = known

    async def _loaded(self, source: Source) -> dict[str, Source]:
        name = source.package.id
        if name not in self._played or not await self._configuring.may_load(source):
            return {name: source}  # it is loaded for the first session that plays it
        try:
            await self._catalog.try_code(source)
        except TurnwrightError as error:
            _log.warning("package %s does not load; turns go on with what it was: %s", name, error)
            return {}
        _log.info("package %s: later turns run %s", name, source.digest)
        return {name: source}

    def takes(self, source: Source) -> bool:
        """Whether later turns run this content of a package."""
        return self._digest(source.package.id, "") == source.digest

    async def followed(self, session: Session) -> tuple[Session, dict[str, Any]]:
        """The session as its next turn is to run it, and the columns that changed.

        A set of packages that does not go together after an edit is told of, and the former one stays.

        Raises:
            TurnwrightError: `package.unknown` when the folder of an active package is gone.
        """
        bundled = self._catalog.bundled_ids()
        own = {e["package_id"]: e["digest"] for e in session.active if e["package_id"] not in bundled}
        self._played |= own.keys()
        if own.keys() - self._present or self._edited(own):
            with suppress(OSError):  # it may be the session that knows the folders better
                await self.take()
        if gone := sorted(own.keys() - self._present):
            raise TurnwrightError(
                Code.PACKAGE_UNKNOWN,
                f"the folder of package {gone[0]!r} is gone",
                accepted=f"its folder, or `session packages {session.session_id} --exclude {gone[0]}`",
            )
        if not (edited := self._edited(own)):
            return session, {}
        try:
            columns = await self._chosen(session, own)
        except TurnwrightError as error:
            _log.warning("session %s keeps the former %s: %s", session.session_id, ", ".join(edited), error)
            return session, {}
        return replace(session, **columns), columns

    async def _chosen(self, session: Session, own: Mapping[str, str]) -> dict[str, Any]:
        sources = dict(self._sources)
        for name in own.keys() - sources.keys():  # broken since before this process began
            sources[name] = await self._catalog.stored(name, own[name])
        chosen = await self._configuring.choose(session.session_id, session, Configure(), sources)
        active = {entry["package_id"] for entry in session.active}
        for problem in chosen.columns["inactive"]:
            if problem["package_id"] in active:
                raise TurnwrightError(Code(problem["code"]), problem["message"])
        return chosen.columns

    def _edited(self, own: Mapping[str, str]) -> list[str]:
        return sorted(name for name, digest in own.items() if self._digest(name, digest) != digest)

    def _digest(self, name: str, otherwise: str) -> str:
        known = self._sources.get(name)
        return known.digest if known else otherwise

    def _stamps(self) -> dict[str, tuple[int, int, int]]:
        return {path: stamp for folder in self._folders for path, stamp in _stamps(folder)}


def _stamps(folder: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Every file below a folder with what an edit changes of it; what goes away meanwhile is left out."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED:
                    yield from _stamps(Path(entry.path))
            else:
                found = entry.stat(follow_symlinks=False)
                yield entry.path, (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            continue
