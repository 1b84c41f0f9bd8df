"""The packages of an installation: which there are, one put in, one taken out, one switched on or off.

known        every package folder, with what keeps it from being played
install      a folder or an archive becomes a package of the home folder
remove       takes it out again
switch       whether new choices may take a package
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from client import validation
from client.validation import Checked
from kernel.errors import Code, TurnwrightError
from link.bundled import bundled
from link.settings import Settings
from store import package_files, package_folders, switches
from store.address import missing_file, parse
from store.engine import Store
from store.package_files import Folder

Origin = Literal["bundled", "folder", "installed"]

_MANIFEST: Final = "PLUGIN.md"
_ACCEPTED: Final = "a package folder, or a zip archive of one"


@dataclass(frozen=True)
class Installed:
    """A package that was put in place. `has_code`: whether there is anything to approve."""

    checked: Checked
    folder: Path
    has_code: bool


@dataclass(frozen=True)
class Known:
    """A package folder.

    Attributes:
        origin: `bundled` with the product, in a `folder` of `packages.path`, or `installed`.
        enabled: whether new choices may take it.
        problem: why it cannot be played; empty when it can.
    """

    package_id: str
    version: str
    origin: Origin
    folder: str
    enabled: bool
    problem: str


async def known(settings: Settings) -> list[Known]:
    """Every package folder, by id; of several of one id the first that can be loaded counts."""
    disabled = await _disabled(settings)
    found: dict[str, list[Known]] = {}
    for origin, root in _roots(settings):
        for folder in package_folders.packages_in(root):
            checked = validation.check(folder)
            same = found.setdefault(checked.package_id, [])
            first = next((one.folder for one in same if not one.problem), "")
            problem = f"{first} has the same id and counts" if first else _problem(checked)
            enabled = checked.package_id not in disabled
            same.append(Known(checked.package_id, checked.version, origin, str(folder), enabled, problem))
    return [one for name in sorted(found) for one in found[name]]


def place(settings: Settings, named: Path) -> Path:
    """The folder of the package of this id; what was named where there is no such package."""
    return _folders(settings).get(str(named), named)


def install(settings: Settings, source: Path, *, replace: bool = False) -> Installed:
    """Put a package in the folder of installed ones; none of its code runs.

    Raises:
        TurnwrightError: `package.unknown` when nothing is at `source`; `package.path`, `package.size` and
            `package.layout` for what no package may hold; `package.invalid` with every problem;
            `package.exists` for an id that is taken.
    """
    content, name = _content(source)
    checked = validation.judge(content, name=name, path=str(source))
    if checked.errors:
        problems = "; ".join(problem.render() for problem in checked.errors)
        raise TurnwrightError(Code.PACKAGE_INVALID, problems, where=str(source))
    folder = settings.installed / name
    taken = _folders(settings).get(name)
    if taken and taken != folder:
        message = f"there is a package {name!r} already, and it would be the one that counts"
        raise TurnwrightError(Code.PACKAGE_EXISTS, message, where=str(taken), accepted="another id")
    if taken and not replace:
        message = f"package {name!r} is installed already"
        raise TurnwrightError(Code.PACKAGE_EXISTS, message, where=str(taken), accepted="--replace")
    package_folders.put(content.files, folder, replace=replace)
    return Installed(checked, folder, any(name.endswith(".py") for name in content.files))


def remove(settings: Settings, package_id: str) -> Path:
    """Take an installed package out; sessions that play it have its content in the store.

    Raises:
        TurnwrightError: `package.unknown`, also for one that is there and was not installed.
    """
    inside = package_folders.packages_in(settings.installed)
    installed = {folder.name: folder for folder in inside}
    if package_id in installed:
        package_folders.take_out(installed[package_id])
        return installed[package_id]
    elsewhere = _folders(settings).get(package_id)
    reason = f"it stands in {elsewhere}, where nobody installed it" if elsewhere else "there is none"
    raise TurnwrightError(
        Code.PACKAGE_UNKNOWN,
        f"no installed package {package_id!r}: {reason}",
        accepted=", ".join(sorted(installed)),
    )


async def switch(settings: Settings, package_id: str, *, enabled: bool) -> None:
    """Let new choices take a package, or not; sessions that have it keep it.

    Raises:
        TurnwrightError: `package.unknown`, or what opening the store refuses.
    """
    folders = _folders(settings)
    store = await Store.open(settings.store_url)
    try:
        async with store.write() as conn:
            names = {*folders, *await switches.disabled(conn)}
            if package_id not in names:
                accepted = ", ".join(sorted(names))
                raise TurnwrightError(
                    Code.PACKAGE_UNKNOWN, f"no package {package_id!r} is known", accepted=accepted
                )
            await switches.switch(conn, package_id, enabled=enabled)
    finally:
        await store.close()


def _roots(settings: Settings) -> Sequence[tuple[Origin, Path]]:
    found: list[tuple[Origin, Path]] = [("bundled", bundled("plugins"))]
    for root in settings.package_folders:
        found.append(("installed" if root == settings.installed else "folder", root))
    return found


def _folders(settings: Settings) -> dict[str, Path]:
    """The package folder that counts, by id."""
    found: dict[str, Path] = {}
    for _, root in _roots(settings):
        for folder in package_folders.packages_in(root):
            found.setdefault(folder.resolve().name, folder)
    return found


def _problem(checked: Checked) -> str:
    if not checked.errors:
        return ""
    more = len(checked.errors) - 1
    return checked.errors[0].render() + (f", and {more} more" if more else "")


async def _disabled(settings: Settings) -> frozenset[str]:
    if missing_file(parse(settings.store_url)):
        return frozenset()  # nobody has played here yet
    store = await Store.open(settings.store_url)
    try:
        async with store.read() as conn:
            return await switches.disabled(conn)
    finally:
        await store.close()


def _content(source: Path) -> tuple[Folder, str]:
    """The files of a package and its id."""
    if not source.exists():
        raise TurnwrightError(
            Code.PACKAGE_UNKNOWN, "nothing is at this path", where=str(source), accepted=_ACCEPTED
        )
    folder = validation.package_folder(source)
    if folder.is_dir():
        return validation.read(folder), folder.resolve().name
    return _of_archive(source)


def _of_archive(source: Path) -> tuple[Folder, str]:
    """An archive holds a package, which then has the archive's name, or one folder that is a package."""
    if not source.is_file():
        raise TurnwrightError(
            Code.PACKAGE_LAYOUT, "this is neither a folder nor a file", where=str(source), accepted=_ACCEPTED
        )
    unpacked = package_files.unpack(_bytes(source))
    files = {name: unpacked[name] for name in unpacked if not package_files.left_behind(name)}
    if _MANIFEST in files:
        return Folder(files, {}), source.stem
    tops = {name.partition("/")[0] for name in files}
    top = tops.pop() if len(tops) == 1 else ""
    if f"{top}/{_MANIFEST}" not in files:
        raise TurnwrightError(
            Code.PACKAGE_LAYOUT,
            "the archive is not that of a package",
            where=str(source),
            accepted=f"{_MANIFEST} at its top, or one folder at its top that holds it",
        )
    return Folder({name.removeprefix(f"{top}/"): files[name] for name in files}, {}), top


def _bytes(source: Path) -> bytes:
    try:
        with source.open("rb") as opened:
            return opened.read(package_files.MAX_ARCHIVE_BYTES + 1)
    except OSError as error:
        message = f"the archive cannot be read: {error.strerror}"
        raise TurnwrightError(Code.PACKAGE_PATH, message, where=str(source)) from None
