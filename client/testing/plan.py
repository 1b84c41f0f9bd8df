"""Which cases a command is to play."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from client import installed
from kernel.errors import Code, TurnwrightError
from kernel.manifest import Package, Runtime, load_package
from kernel.manifest.cases import CASE_FILES, Case, later, read_cases
from kernel.manifest.loaded import invalid
from link.settings import Settings
from store.package_files import Folder, read_folder

SMOKE = "smoke"
"""The case of a runtime that has none: it runs once, against the offline model, and must not fail."""


@dataclass(frozen=True)
class Planned:
    """One case with the runtime that it is about, and the folders of further packages."""

    case: Case
    runtime: Runtime
    others: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A package, and its cases in order."""

    folder: Path
    package: Package
    cases: tuple[Planned, ...]


def plan(settings: Settings, named: str, *, case: str | None = None, live: bool = False) -> Plan:
    """What to play for `PATH|ID[/RUNTIME]`.

    Raises:
        TurnwrightError: `package.unknown`, `package.invalid` with every problem of package or cases,
            `runtime.unknown`, or `feature.not-supported` for what a case asks of a later version.
    """
    folder, runtime_name = _find(settings, named)
    content = read_folder(folder)
    package = _parsed(folder, content)
    only = _runtime(package, runtime_name) if runtime_name else None
    cases = _cases(package, content)
    found = [
        one
        for one in (_planned(settings, folder, package, written) for written in cases or ())
        if only is None or one.runtime.id == only.id
    ]
    if not found:
        found = [_smoke(package, only, has_file=cases is not None)]
    if case is not None:
        found = _named(found, case)
    if live:
        found = [replace(one, case=one.case.model_copy(update={"mode": "live"})) for one in found]
    return Plan(folder, package, tuple(found))


def load(folder: Path) -> Package:
    """The package of a folder.

    Raises:
        TurnwrightError: `package.invalid` with every problem.
    """
    return _parsed(folder, read_folder(folder))


def _parsed(folder: Path, content: Folder) -> Package:
    return load_package(content.files, name=folder.resolve().name, links=content.links).require(str(folder))


def _find(settings: Settings, named: str) -> tuple[Path, str]:
    """The package folder, and the name of a runtime behind it."""
    package, _, runtime = named.rpartition("/")
    try:
        return installed.find(settings, named), ""
    except TurnwrightError as error:
        if error.code != Code.PACKAGE_UNKNOWN or not package:
            raise
        return installed.find(settings, package), runtime


def _runtime(package: Package, name: str) -> Runtime:
    found = package.runtime(name) or package.runtime(f"{package.id}/{name}")
    if found is None:
        known = ", ".join(runtime.id for runtime in package.runtimes) or "none; the package has no runtime"
        raise TurnwrightError(Code.RUNTIME_UNKNOWN, f"no runtime {name!r} in {package.id}", accepted=known)
    return found


def _cases(package: Package, content: Folder) -> tuple[Case, ...] | None:
    file = next((name for name in CASE_FILES if name in content.files), None)
    if file is None:
        return None
    cases, problems = read_cases(content.files[file], file=file)
    if problems:
        raise invalid(problems, package.id)
    return cases


def _planned(settings: Settings, folder: Path, package: Package, case: Case) -> Planned:
    if unmet := later(case):
        message = f"case {case.name!r}: {', '.join(unmet)} is not in this version"
        raise TurnwrightError(Code.NOT_SUPPORTED, message, where=package.id)
    if case.runtime_id is None and len(package.runtimes) != 1:
        known = ", ".join(runtime.id for runtime in package.runtimes)
        message = f"case {case.name!r} names no runtimeId, and the package has several"
        raise TurnwrightError(Code.PACKAGE_INVALID, message, where=package.id, accepted=known)
    runtime = _runtime(package, case.runtime_id) if case.runtime_id else package.runtimes[0]
    others = tuple(_other(settings, folder, name) for name in case.with_plugins)
    return Planned(case, runtime, others)


def _other(settings: Settings, folder: Path, name: str) -> Path:
    beside = folder / name
    return beside if (beside / "PLUGIN.md").is_file() else installed.find(settings, name)


def _smoke(package: Package, only: Runtime | None, *, has_file: bool) -> Planned:
    if only is None and (has_file or len(package.runtimes) != 1):
        message = f'plugin "{package.id}" has no {" or ".join(CASE_FILES)}'
        if has_file:
            message = f'plugin "{package.id}" has no case'
        accepted = f"a case file, or one of {', '.join(runtime.id for runtime in package.runtimes)}"
        raise TurnwrightError(Code.PACKAGE_REFERENCE, message, accepted=accepted)
    return Planned(Case(name=SMOKE), only or package.runtimes[0])


def _named(found: list[Planned], name: str) -> list[Planned]:
    chosen = [one for one in found if one.case.name == name]
    if not chosen:
        known = ", ".join(one.case.name for one in found)
        raise TurnwrightError(Code.PACKAGE_REFERENCE, f"no case {name!r}", accepted=known)
    return chosen
