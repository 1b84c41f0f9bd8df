"""Packages as this worker knows them: found in folders, frozen by digest, loaded from the store.

A session activates packages from folders; from then on its runs name digests alone, and any worker loads
exactly those (DESIGN §4, rule 6).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from activities.plugins.child.code import IsolatedCode, Isolation
from activities.plugins.child.pool import Children
from activities.plugins.code import PackageCode
from activities.plugins.loader import code_files, forget_code, load_code
from kernel.agent.messages import ToolSpec
from kernel.catalog import BUILTIN_DATA_TOOLS, builtin_spec, tool_names
from kernel.errors import Code, TurnwrightError
from kernel.manifest import Loaded, Package, Runtime, load_package, unanswerable
from kernel.policy import admits, not_admitted
from store import grants, package_files
from store.contents import PackageContents
from store.engine import Store
from store.package_folders import packages_in

_KEPT = 256
_Key = tuple[str, str]
"""Package id and digest: packages of equal content have one digest, and each its own ids."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A package as its folder holds it, or as it was stored: then there is no folder."""

    digest: str
    package: Package
    files: Mapping[str, bytes]
    folder: Path | None = None
    bundled: bool = False

    @property
    def has_code(self) -> bool:
        """Whether there is anything to run."""
        return code_files(self.package).any


@dataclass(frozen=True)
class LivePackage:
    """A package of one digest, its code loaded."""

    digest: str
    package: Package
    code: PackageCode | IsolatedCode
    _offered: dict[str, tuple[ToolSpec, ...]] = field(default_factory=dict)

    @property
    def gated(self) -> frozenset[str]:
        """Tools that need approval (DECISIONS 13)."""
        return frozenset(name for name, tool in self.code.tools.items() if tool.needs_approval)

    def runtime(self, runtime_id: str) -> Runtime:
        """The runtime of this id.

        Raises:
            TurnwrightError: `runtime.unknown`.
        """
        if (found := self.package.runtime(runtime_id)) is None:
            known = ", ".join(runtime.id for runtime in self.package.runtimes)
            raise TurnwrightError(Code.RUNTIME_UNKNOWN, f"no runtime {runtime_id!r}", accepted=known)
        return found

    def offered(self, runtime: Runtime) -> tuple[ToolSpec, ...]:
        """The tools of one of its agents as a model sees them, always the same objects.

        Raises:
            TurnwrightError: `tool.unknown`, for a tool that is not registered.
        """
        if runtime.id not in self._offered:
            self._offered[runtime.id] = tuple(self._spec(name) for name in tool_names(runtime))
        return self._offered[runtime.id]

    def _spec(self, name: str) -> ToolSpec:
        if name in BUILTIN_DATA_TOOLS:
            return builtin_spec(name, self.package)
        tool = self.code.tool(name)
        return ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters)


class Catalog:
    """Finds, stores and loads packages.

    Args:
        contents: where the content of digests is kept.
        bundled: folder of the bundled packages; their code runs in this process.
        folders: further folders of packages; their code runs in child processes, once it is approved.
        cache: where content of digests is laid out to be imported.
        isolation: how the child processes are confined.
        follows: whether the approval of a folder holds for what the folder comes to hold.
        trusted: folders whose packages are trusted as the bundled ones are.
        kept: how many packages stay loaded; the one that was not asked for the longest goes first.
    """

    def __init__(
        self,
        store: Store,
        contents: PackageContents,
        bundled: Path,
        folders: Sequence[Path],
        cache: Path,
        *,
        isolation: Isolation | None = None,
        follows: bool = False,
        trusted: Sequence[Path] = (),
        kept: int = _KEPT,
    ) -> None:
        self._store, self._contents = store, contents
        self._bundled = bundled
        self._trusted = (bundled, *trusted)
        self._folders = tuple(folders)
        self._cache = cache
        self._isolation = isolation or Isolation()
        self._children = Children()
        self._follows = follows
        self._kept = kept
        self._live: OrderedDict[_Key, LivePackage] = OrderedDict()
        self._loading: dict[_Key, asyncio.Future[LivePackage]] = {}
        self._scanning = asyncio.Lock()
        self._parsed: dict[Any, Loaded] = {}

    def bundled_ids(self) -> tuple[str, ...]:
        """Ids of the bundled packages."""
        return tuple(path.name for path in packages_in(self._bundled))

    async def sources(self) -> dict[str, Source]:
        """Every package that can be activated, by id; a bad folder is left out with a log line.

        Folders are read anew each time, in a thread; only what changed is parsed again.
        """
        async with self._scanning:
            return await asyncio.to_thread(self._scan)

    def folder_names(self) -> frozenset[str]:
        """Names of all package folders, of those too that cannot be loaded."""
        return frozenset(path.name for root in (self._bundled, *self._folders) for path in packages_in(root))

    async def stored(self, package_id: str, digest: str) -> Source:
        """A package of a digest as if its folder were still there.

        Raises:
            TurnwrightError: as `live`.
        """
        live, files = await self.live(package_id, digest), await self._contents.load(digest)
        return Source(digest, live.package, files)

    def diagnose(self, name: str) -> str:
        """Why a package of this name cannot be loaded; empty when no folder has that name."""
        if Path(name).name != name:  # a client's word must not lead out of the folders
            return ""
        paths = self._places().get(name, {})
        if len(paths) > 1:
            return _several(name, paths)
        for path, _ in paths.values():
            loaded = _parse(path, package_files.read_folder(path))
            return "\n".join(problem.render() for problem in loaded.errors)
        return ""

    async def approved(self, sources: Collection[Source], session_id: str | None) -> frozenset[str]:
        """The digests of these packages whose code a session may run; any session where None is given."""
        asked = [source for source in sources if source.has_code and not source.bundled]
        subjects = {source.digest: self._subjects(source) for source in asked}
        async with self._store.read() as conn:
            given = await grants.in_force(conn, set().union(*subjects.values()), session_id)
        return frozenset(
            source.digest
            for source in sources
            if admits(
                bundled=source.bundled,
                has_code=source.has_code,
                granted=bool(subjects.get(source.digest, set()) & given),
            )
        )

    def _subjects(self, source: Source) -> set[str]:
        follows = self._follows and source.folder is not None
        return {source.digest, *([grants.followed(source.folder)] if follows and source.folder else [])}

    async def try_code(self, source: Source) -> None:
        """Load a package's code before it is activated, so that a session is not made on what cannot run.

        Raises:
            TurnwrightError: `package.load-failed`, with file and line; `package.isolation`;
                `package.unsupported-feature` for a function that may call a tool which needs approval.
        """
        key = source.package.id, source.digest
        live = self._known(key) or await self._once(
            key, lambda: self._keep(source.digest, source.package, source.files, bundled=source.bundled)
        )
        if found := unanswerable(live.package, live.gated):
            message = "; ".join(f"package {live.package.id!r}: {problem.render()}" for problem in found)
            raise TurnwrightError(Code.PACKAGE_UNSUPPORTED, message)

    async def freeze(self, source: Source, session_id: str) -> dict[str, str]:
        """Store a package's content; returns its `{package_id, digest, version}`.

        What a followed folder holds now stays approved when the folder has gone on, and a bundled package
        when the product has: runs that started with it finish with it.
        """
        package = source.package
        await self._contents.put(package.id, package.version, source.files)
        if source.has_code:
            await self._keep_approved(source, session_id)
        return {"package_id": package.id, "digest": source.digest, "version": package.version}

    async def _keep_approved(self, source: Source, session_id: str) -> None:
        async with self._store.read() as conn:
            if await grants.in_force(conn, {source.digest}, session_id):
                return
        scope, by = (
            (grants.EVERYWHERE, "the product") if source.bundled else (session_id, "a followed folder")
        )
        async with self._store.write() as conn:
            await grants.give_once(
                conn, subject=source.digest, package_id=source.package.id, session_id=scope, granted_by=by
            )

    async def close(self) -> None:
        """End every child process."""
        await self._children.close()

    async def live(self, package_id: str, digest: str) -> LivePackage:
        """The package of a digest, from memory or from the store.

        Raises:
            TurnwrightError: `package.digest-mismatch`, `package.load-failed`.
        """
        key = package_id, digest
        return self._known(key) or await self._once(key, lambda: self._load(package_id, digest))

    def _known(self, key: _Key) -> LivePackage | None:
        if (found := self._live.get(key)) is not None:
            self._live.move_to_end(key)
        return found

    async def _once(self, key: _Key, load: Callable[[], Awaitable[LivePackage]]) -> LivePackage:
        """Load once for all that wait; one that is cancelled leaves it to the others."""
        if key not in self._loading:
            self._loading[key] = asyncio.ensure_future(load())
            self._loading[key].add_done_callback(lambda _: self._loading.pop(key))
        return await asyncio.shield(self._loading[key])

    async def _load(self, package_id: str, digest: str) -> LivePackage:
        files = await self._contents.load(digest)
        package = (await asyncio.to_thread(load_package, files, name=package_id)).require(package_id)
        bundled = await asyncio.to_thread(self._is_bundled, package_id, digest)
        return await self._keep(digest, package, files, bundled=bundled)

    async def _keep(
        self, digest: str, package: Package, files: Mapping[str, bytes], *, bundled: bool
    ) -> LivePackage:
        folder = await asyncio.to_thread(package_files.materialise, files, digest, self._cache)
        try:
            code = await self._code(folder, digest, package, bundled=bundled)
        except TurnwrightError as error:
            where = f"{package.id}/{error.where}" if error.where else package.id
            raise TurnwrightError(error.code, error.message, where=where, accepted=error.accepted) from error
        live = self._live[package.id, digest] = LivePackage(digest, package, code)
        while len(self._live) > self._kept:
            evicted, _ = self._live.popitem(last=False)
            self._children.end(*evicted)
            await asyncio.to_thread(forget_code, *evicted)  # its lock is held while code loads
        return live

    async def _code(
        self, folder: Path, digest: str, package: Package, *, bundled: bool
    ) -> PackageCode | IsolatedCode:
        files = code_files(package)
        if bundled or not files.any:
            return await asyncio.to_thread(load_code, folder, files, digest=digest)

        async def admit(session_id: str) -> None:
            async with self._store.read() as conn:
                if not await grants.in_force(conn, {digest}, session_id):
                    raise not_admitted(package.id, session_id)

        return await IsolatedCode.load(
            folder, files, digest=digest, children=self._children, admit=admit, isolation=self._isolation
        )

    def _is_bundled(self, package_id: str, digest: str) -> bool:
        """Whether the product holds this very content; of an earlier version only the digest remains."""
        folders = [path for root in self._trusted for path in packages_in(root) if path.name == package_id]
        return any(package_files.digest(package_files.read_folder(path).files) == digest for path in folders)

    def _scan(self) -> dict[str, Source]:
        found: dict[str, Source] = {}
        known, self._parsed = self._parsed, {}
        for name, paths in self._places().items():
            if len(paths) > 1:
                _log.warning("%s: none of them is taken", _several(name, paths))
                continue
            ((path, bundled),) = paths.values()
            if source := self._source(path, known, bundled=bundled):
                found[name] = source
        return found

    def _places(self) -> dict[str, dict[Path, tuple[Path, bool]]]:
        """Every package folder by its name, and whether it is trusted; a folder counts once."""
        found: dict[str, dict[Path, tuple[Path, bool]]] = {}
        for root in (*self._trusted, *self._folders):
            for path in packages_in(root):
                found.setdefault(path.name, {}).setdefault(path.resolve(), (path, root in self._trusted))
        return found

    def _source(self, path: Path, known: Mapping[Any, Loaded], *, bundled: bool) -> Source | None:
        try:
            folder = package_files.read_folder(path)
            digest = package_files.digest(folder.files)
            key = path.name, digest, tuple(folder.links.items())
            loaded = self._parsed[key] = known.get(key) or _parse(path, folder)
        except TurnwrightError as error:
            _log.warning("package folder %s is left out: %s", path, error)
            return None
        if loaded.package is None:
            _log.warning(
                "package %s is left out: %s", path.name, "; ".join(p.render() for p in loaded.errors)
            )
            return None
        return Source(digest, loaded.package, folder.files, path, bundled)


def _several(name: str, paths: Collection[Path]) -> str:
    return f"several folders hold a package {name!r}: {', '.join(map(str, paths))}"


def _parse(path: Path, folder: package_files.Folder) -> Loaded:
    return load_package(folder.files, name=path.name, links=folder.links)
