"""Loads a package's code: one set of modules per digest, checked whole before anything runs.

Modules live under a name made from the digest, so that two digests of one package stand side by side and
a run keeps the code it started with (DESIGN §4, rule 6). Relative imports inside the package work;
absolute ones find the standard library and installed distributions, never the package itself.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from activities.plugins.imports import check_imports
from activities.plugins.modules import PREFIX, install, remove
from kernel.errors import Code, TurnwrightError
from kernel.manifest.contributes import ContributedTool
from turnwright.sdk.registration import Host, RegisteredTool

ENTRY = "server/__init__.py"
Function = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class CodeFiles:
    """What of a package is code; paths from the package root.

    Attributes:
        handlers, guards: modules of function runtimes and guards.
        entry: the entry module, or None when the package has none.
        tools: `contributes.tools`.
    """

    package: str
    handlers: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    entry: str | None = None
    tools: tuple[ContributedTool, ...] = ()


@dataclass(frozen=True)
class PackageCode:
    """The loaded functions of one digest. `folder`: where its files lie, for the places of errors."""

    package: str
    digest: str
    folder: Path
    functions: dict[tuple[str, str], Function] = field(default_factory=dict)
    tools: dict[str, RegisteredTool] = field(default_factory=dict)

    def function(self, kind: str, module: str) -> Function:
        """The `handler` or `guard` of a module.

        Raises:
            TurnwrightError: `package.load-failed` when the package declares no such module.
        """
        if (found := self.functions.get((kind, module))) is None:
            raise failed(self.package, f"{module} is not a {kind} of this package")
        return found

    def tool(self, name: str) -> RegisteredTool:
        """A registered tool.

        Raises:
            TurnwrightError: `tool.unknown`.
        """
        if (found := self.tools.get(name)) is None:
            raise TurnwrightError(
                Code.TOOL_UNKNOWN,
                f"package {self.package} registers no tool {name[:80]!r}",
                accepted=", ".join(sorted(self.tools)),
            )
        return found


_loaded: dict[str, PackageCode] = {}
_lock = threading.Lock()


def load_code(folder: Path, files: CodeFiles, *, digest: str) -> PackageCode:
    """Load a package's code, once per digest.

    Args:
        folder: the materialised package; its content is that of `digest`.

    Raises:
        TurnwrightError: `package.load-failed` with file and line, or `feature.not-supported`; the next
            call tries again.
    """
    with _lock:
        if digest not in _loaded:
            _loaded[digest] = _load(folder, files, digest)
        return _loaded[digest]


def forget_code(digest: str) -> None:
    """Drop a digest's modules; runs that hold its functions keep them."""
    with _lock:
        if (code := _loaded.pop(digest, None)) is not None:
            remove(_root(code.package, digest))


def failed(where: str, message: str, accepted: str = "") -> TurnwrightError:
    """`package.load-failed`."""
    return TurnwrightError(Code.PACKAGE_LOAD, message, where=where, accepted=accepted)


def _root(package: str, digest: str) -> str:
    return f"{PREFIX}{package}_{digest.removeprefix('sha256:')}".replace(".", "_").replace(":", "_")


def _load(folder: Path, files: CodeFiles, digest: str) -> PackageCode:
    if not (files.handlers or files.guards or files.entry):
        return PackageCode(files.package, digest, folder, {}, _checked_tools(files, {}))
    check_imports(folder)
    root = _root(files.package, digest)
    install(root, folder)
    try:
        functions = {
            (kind, path): _function(folder, root, path, kind)
            for kind, paths in (("handler", files.handlers), ("guard", files.guards))
            for path in paths
        }
        return PackageCode(files.package, digest, folder, functions, _tools(folder, root, files))
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
        raise failed(f"{path}:{_line(found)}", f"`{kind}` is not async", f"async def {kind}(ctx)")
    return found  # type: ignore[no-any-return]


def _tools(folder: Path, root: str, files: CodeFiles) -> dict[str, RegisteredTool]:
    if files.entry is None:
        return _checked_tools(files, {})
    module = _module(folder, root, files.entry)
    register = getattr(module, "register", None)
    if register is None:
        raise failed(files.entry, "the entry defines no `register`", "def register(host)")
    if not inspect.isfunction(register) or inspect.iscoroutinefunction(register):
        raise failed(
            f"{files.entry}:{_line(register)}", "`register` is no plain function", "def register(host)"
        )
    host = Host(files.package)
    _guarded(folder, files.entry, lambda: register(host))
    return _checked_tools(files, host.tools)


def _checked_tools(files: CodeFiles, registered: dict[str, RegisteredTool]) -> dict[str, RegisteredTool]:
    """Declarations and registrations, checked both ways. Spec: plugin-model §1; DECISIONS 13."""
    declared = {tool.name: tool for tool in files.tools}
    where = files.entry or ENTRY
    if missing := sorted(declared.keys() - registered.keys()):
        raise failed(where, f"contributes.tools lists {missing[0]!r}, which the entry does not register")
    if extra := sorted(registered.keys() - declared.keys()):
        raise failed(where, f"the entry registers {extra[0]!r}, which contributes.tools does not list")
    for name, tool in declared.items():
        _same(where, name, "risk", tool.risk, registered[name].risk)
        _same(where, name, "needsApproval", tool.needs_approval, registered[name].needs_approval)
    return registered


def _same(where: str, name: str, what: str, declared: object, registered: object) -> None:
    if declared is not None and declared != registered:
        message = f"tool {name!r}: contributes.tools says {what} {declared!r}, the entry {registered!r}"
        raise failed(where, message, "the same in both, or left out of the manifest")


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


def place_of(error: BaseException, folder: Path) -> str:
    """`file:line` of the package's innermost frame of an error, or an empty text."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_inside(error.filename, folder) or error.filename}:{error.lineno or 0}"
    place, trace = "", error.__traceback__
    while trace is not None:
        if inside := _inside(trace.tb_frame.f_code.co_filename, folder):
            place = f"{inside}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def described(error: BaseException) -> str:
    """Type and message of an error, bounded."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}"[:300]


def _inside(filename: str, folder: Path) -> str:
    try:
        return Path(filename).relative_to(folder).as_posix()
    except ValueError:
        return ""


def _line(found: Any) -> int:
    return getattr(getattr(found, "__code__", None), "co_firstlineno", 0)
