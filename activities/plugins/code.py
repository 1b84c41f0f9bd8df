"""What a loaded package offers to run, and where its errors stand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kernel.errors import Code, TurnwrightError
from kernel.manifest.contributes import Contributes
from turnwright.sdk.registration import Registered, RegisteredTool

Function = Callable[..., Awaitable[Any]]
Tool = TypeVar("Tool")


@dataclass(frozen=True)
class CodeFiles:
    """What of a package is code; paths from the package root.

    Attributes:
        handlers, guards: modules of function runtimes and guards.
        entry: the entry module, or None when the package has none.
        contributes: what the manifest declares of the entry.
    """

    package: str
    handlers: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    entry: str | None = None
    contributes: Contributes = field(default_factory=Contributes)

    @property
    def any(self) -> bool:
        """Whether there is any code."""
        return bool(self.handlers or self.guards or self.entry)


@dataclass(frozen=True)
class PackageCode:
    """The loaded functions of one digest. `folder`: where its files lie, for the places of errors."""

    package: str
    digest: str
    folder: Path
    functions: dict[tuple[str, str], Function] = field(default_factory=dict)
    registered: Registered = field(default_factory=Registered)

    @property
    def tools(self) -> dict[str, RegisteredTool]:
        """The registered tools, by name."""
        return self.registered.tools

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
        return find_tool(self.package, self.tools, name)


def find_tool(package: str, tools: Mapping[str, Tool], name: str) -> Tool:
    """The tool of a name, of those that a package registers.

    Raises:
        TurnwrightError: `tool.unknown`.
    """
    if (found := tools.get(name)) is None:
        message = f"package {package} registers no tool {name[:80]!r}"
        raise TurnwrightError(Code.TOOL_UNKNOWN, message, accepted=", ".join(sorted(tools)))
    return found


def failed(where: str, message: str, accepted: str = "") -> TurnwrightError:
    """`package.load-failed`."""
    return TurnwrightError(Code.PACKAGE_LOAD, message, where=where, accepted=accepted)


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
