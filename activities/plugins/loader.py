"""Loads a package's code: one set of modules per digest, checked whole before anything runs.

Modules live under a name made from the digest, so that two digests of one package stand side by side and
a run keeps the code it started with (DESIGN §4, rule 6). Relative imports inside the package work;
absolute ones find the standard library and installed distributions, never the package itself.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from activities.plugins.code import CodeFiles, Function, PackageCode, described, failed, place_of
from activities.plugins.entry import check_entry
from activities.plugins.imports import check_imports
from activities.plugins.modules import PREFIX, install, remove
from kernel.errors import TurnwrightError
from kernel.manifest.loaded import Package
from turnwright.sdk.registration import Host, Registered

_loaded: dict[tuple[str, str], PackageCode] = {}
_lock = threading.Lock()


def code_files(package: Package) -> CodeFiles:
    """What of a package is code."""
    return CodeFiles(
        package=package.id,
        handlers=tuple(runtime.handler for runtime in package.runtimes if runtime.handler),
        guards=tuple(runtime.guard for runtime in package.runtimes if runtime.guard),
        entry=package.entry,
        contributes=package.manifest.contributes,
    )


def load_code(folder: Path, files: CodeFiles, *, digest: str, foreign: bool = False) -> PackageCode:
    """Load a package's code, once per package and digest: two packages of equal content share neither.

    Args:
        folder: the materialised package; its content is that of `digest`.
        foreign: the package is not bundled; what it may import is limited.

    Raises:
        TurnwrightError: `package.load-failed` with file and line, or `feature.not-supported`; the next
            call tries again.
    """
    with _lock:
        key = (files.package, digest)
        if key not in _loaded:
            _loaded[key] = _load(folder, files, digest, foreign=foreign)
        return _loaded[key]


def forget_code(package: str, digest: str) -> None:
    """Drop the modules of a package's digest; runs that hold its functions keep them."""
    with _lock:
        _loaded.pop((package, digest), None)
        remove(_root(package, digest))


def _root(package: str, digest: str) -> str:
    return f"{PREFIX}{package}_{digest.removeprefix('sha256:')}".replace(".", "_").replace(":", "_")


def _load(folder: Path, files: CodeFiles, digest: str, *, foreign: bool) -> PackageCode:
    if not files.any:
        check_entry(files, nothing := Registered())
        return PackageCode(files.package, digest, folder, {}, nothing)
    check_imports(folder, foreign=foreign)
    root = _root(files.package, digest)
    install(root, folder)
    try:
        functions = {
            (kind, path): _function(folder, root, path, kind)
            for kind, paths in (("handler", files.handlers), ("guard", files.guards))
            for path in paths
        }
        return PackageCode(files.package, digest, folder, functions, _registered(folder, root, files))
    except BaseException:
        remove(root)
        raise


def _function(folder: Path, root: str, path: str, kind: str) -> Function:
    module = _module(folder, root, path)
    found = getattr(module, kind, None)
    if found is None:
        raise failed(path, f"the module defines no `{kind}`", f"async def {kind}(ctx)")
    if not inspect.iscoroutinefunction(found):
        # A sync function would hold up every other run of the worker (DECISIONS 22).
        raise failed(_line(path, found), f"`{kind}` is not async", f"async def {kind}(ctx)")
    return found  # type: ignore[no-any-return]


def _registered(folder: Path, root: str, files: CodeFiles) -> Registered:
    host = Host(files.package)
    if files.entry is not None:
        module = _module(folder, root, files.entry)
        register = getattr(module, "register", None)
        if register is None:
            raise failed(files.entry, "the entry defines no `register`", "def register(host)")
        if not inspect.isfunction(register) or inspect.iscoroutinefunction(register):
            raise failed(
                _line(files.entry, register), "`register` is no plain function", "def register(host)"
            )
        _guarded(folder, files.entry, lambda: register(host))
    check_entry(files, host.registered)
    return host.registered


def _module(folder: Path, root: str, path: str) -> ModuleType:
    parts = PurePosixPath(path).with_suffix("").parts
    if not path.endswith(".py") or ".." in parts or any("." in part for part in parts):
        raise failed(path, "not the path of a module", "a .py file of the package, without other dots")
    if not (folder / path).is_file():
        raise failed(path, "the file does not exist")
    name = ".".join((root, *(parts[:-1] if parts[-1] == "__init__" else parts)))
    return _guarded(folder, path, lambda: import_module(name))  # type: ignore[no-any-return]


def _guarded(folder: Path, path: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except TurnwrightError as error:
        place = error.where or place_of(error, folder) or path
        raise TurnwrightError(error.code, error.message, where=place, accepted=error.accepted) from error
    except (Exception, SystemExit) as error:
        raise failed(place_of(error, folder) or path, described(error)) from error


def _line(path: str, found: Any) -> str:
    code = getattr(found, "__code__", None)
    return f"{path}:{code.co_firstlineno}" if code else path
