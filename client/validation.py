"""Checks a package folder without running any of its code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernel.errors import Code, TurnwrightError
from kernel.manifest import Diagnostic, load_package
from kernel.manifest.diagnostics import ordered
from kernel.manifest.locales import locale_of
from store.package_files import Folder, digest, read_folder

_MANIFESTS = ("PLUGIN.md", "RUNTIME.md")
_ACCEPTED = "a package folder, its PLUGIN.md, or one of its RUNTIME.md"


@dataclass(frozen=True)
class Checked:
    """What a package's manifests say.

    Attributes:
        path: the folder as it was named.
        digest: of the files; empty where they cannot be read.
        version: as the manifest says; empty where it cannot be loaded.
        title: its name for people; empty where it cannot be loaded.
        text: locales that labels are written in.
        instructions: languages that prompts are written in.
    """

    path: str
    package_id: str
    digest: str = ""
    version: str = ""
    title: str = ""
    errors: tuple[Diagnostic, ...] = ()
    advice: tuple[Diagnostic, ...] = ()
    text: tuple[str, ...] = ("en",)
    instructions: tuple[str, ...] = ("en",)

    @property
    def good(self) -> bool:
        """Whether the package can be loaded."""
        return not self.errors


def check(path: Path, *, locale: str = "en") -> Checked:
    """Check the package of a folder, of its `PLUGIN.md` or of one of its `RUNTIME.md`.

    Raises:
        TurnwrightError: `package.unknown` when there is nothing at this path.
    """
    if not path.exists():
        raise TurnwrightError(
            Code.PACKAGE_UNKNOWN, "nothing is at this path", where=str(path), accepted=_ACCEPTED
        )
    folder = package_folder(path)
    name = folder.resolve().name
    try:
        files = read(folder)
    except TurnwrightError as error:
        problem = Diagnostic(error.code, error.message, error.where, accepted=error.accepted)
        return Checked(str(folder), name, errors=(problem,))
    return judge(files, name=name, path=str(folder), locale=locale)


def judge(files: Folder, *, name: str, path: str, locale: str = "en") -> Checked:
    """Check the content of a package, wherever it comes from.

    Args:
        name: of its folder, which is the package's id.
        path: where it comes from, for people.
        locale: language of its title.
    """
    loaded = load_package(files.files, name=name, links=files.links)
    return Checked(
        path=path,
        package_id=name,
        digest=digest(files.files),
        version=loaded.package.version if loaded.package else "",
        title=loaded.package.title(locale) if loaded.package else "",
        errors=ordered([*loaded.errors, *loaded.ignored]),
        advice=loaded.advice,
        text=_text_locales(files),
        instructions=_instruction_languages(files),
    )


def lines(checked: Checked) -> list[str]:
    """The verdict as people read it: every problem, or two lines when there is none."""
    found = [problem.render() for problem in checked.errors]
    if found:
        return found
    return [
        f"✓ Static package validation: {checked.path}",
        f"  languages: text {', '.join(checked.text)}; instructions {', '.join(checked.instructions)}",
    ]


def package_folder(path: Path) -> Path:
    """The folder of the package that a path names; the path itself where it names none."""
    if path.name not in _MANIFESTS or path.is_dir():
        return path
    return next((folder for folder in path.parents if (folder / "PLUGIN.md").is_file()), path)


def read(folder: Path) -> Folder:
    """Read a package folder.

    Raises:
        TurnwrightError: `package.layout`, `package.path`, `package.size`.
    """
    if not folder.is_dir():
        raise TurnwrightError(
            Code.PACKAGE_LAYOUT, "this belongs to no package", where=str(folder), accepted=_ACCEPTED
        )
    try:
        return read_folder(folder)
    except OSError as error:
        message = f"this cannot be read: {error.strerror}"
        raise TurnwrightError(Code.PACKAGE_PATH, message, where=str(error.filename)) from None


def _text_locales(folder: Folder) -> tuple[str, ...]:
    found = {tag for name in folder.files if (tag := locale_of(name)) is not None}
    return ("en", *sorted(found - {"en"}))


def _instruction_languages(folder: Folder) -> tuple[str, ...]:
    names = {PurePosixPath(name).name for name in folder.files}
    return ("en", "zh") if names & {"PLUGIN.zh.md", "RUNTIME.zh.md"} else ("en",)
