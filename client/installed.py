"""Packages in the home folder: put in from a folder or an archive, taken out; and where packages stand.

places       every package folder, by id
find         the one that a path or an id names
install      a folder or an archive becomes a package of the home folder
remove       takes it out again
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from client import validation
from client.validation import Checked
from kernel.errors import Code, TurnwrightError
from kernel.manifest.loaded import invalid
from link.bundled import bundled
from link.settings import Settings
from store import package_files, package_folders
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


def roots(settings: Settings) -> list[tuple[Origin, Path]]:
    """Where packages are looked for, in order."""
    found: list[tuple[Origin, Path]] = [("bundled", bundled("plugins"))]
    for root in settings.package_folders:
        found.append(("installed" if root == settings.installed else "folder", root))
    return found


def places(settings: Settings) -> dict[str, list[Path]]:
    """Every package folder, by id; where an id has several, none of them is played."""
    found: dict[str, dict[Path, Path]] = {}
    for _, root in roots(settings):
        for folder in package_folders.packages_in(root):
            real = folder.resolve()
            found.setdefault(real.name, {}).setdefault(real, folder)
    return {name: list(folders.values()) for name, folders in found.items()}


def find(settings: Settings, named: str) -> Path:
    """The package folder that a path names, or the id of a package.

    Raises:
        TurnwrightError: `package.unknown`; `package.exists` for an id that several folders have.
    """
    folder = validation.package_folder(Path(named))
    if (folder / _MANIFEST).is_file():
        return folder
    known = places(settings)
    folders = known.get(named, [])
    if len(folders) > 1:
        where = ", ".join(map(str, folders))
        message = f"several folders hold a package {named!r}, and none of them is played"
        raise TurnwrightError(Code.PACKAGE_EXISTS, message, where=where, accepted="one of them, by its path")
    if not folders:
        message = f"no package {named!r} is in the package folders"
        accepted = ", ".join(sorted(known)) or "the path of a package folder"
        raise TurnwrightError(Code.PACKAGE_UNKNOWN, message, accepted=accepted)
    return folders[0]


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
        raise invalid(checked.errors, str(source))
    folder = settings.installed / name
    taken = places(settings).get(name, [])
    if others := [place for place in taken if place != folder]:
        message = f"there is a package {name!r} already"
        raise TurnwrightError(Code.PACKAGE_EXISTS, message, where=str(others[0]), accepted="another id")
    if taken and not replace:
        message = f"package {name!r} is installed already"
        raise TurnwrightError(Code.PACKAGE_EXISTS, message, where=str(folder), accepted="--replace")
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
    elsewhere = places(settings).get(package_id, [])
    reason = f"it stands in {elsewhere[0]}, where nobody installed it" if elsewhere else "there is none"
    raise TurnwrightError(
        Code.PACKAGE_UNKNOWN,
        f"no installed package {package_id!r}: {reason}",
        accepted=", ".join(sorted(installed)),
    )


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
