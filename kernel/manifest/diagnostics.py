"""What a manifest says wrong, where, and what would be accepted.

A diagnostic is a value: reading a package collects all of them and raises none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kernel.errors import Code

FieldPath: TypeAlias = tuple[str | int, ...]
"""A place in parsed data: map keys and list indexes from the root."""

Lines: TypeAlias = dict[FieldPath, int]
"""The 1-based line of every place in one parsed file."""

Severity: TypeAlias = Literal["error", "ignored", "advice"]

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding in one file.

    Args:
        code: one of the closed list.
        message: what was refused, in one sentence that names the field.
        file: path from the package root.
        line: 1-based; None when the finding has no line (a missing file, a JSON file).
        path: the field, as `io.inputs.narrative.select`; empty when it is about a whole file.
        accepted: what would have been accepted; empty when nothing would.
        severity: `error` keeps the package from loading; `ignored` does not, and fails its validation;
            `advice` neither.
    """

    code: Code
    message: str
    file: str
    line: int | None = None
    path: str = ""
    accepted: str = ""
    severity: Severity = "error"

    @property
    def is_error(self) -> bool:
        """Whether the package cannot be loaded because of it."""
        return self.severity == "error"

    @property
    def sort_key(self) -> tuple[str, int, str, str, str]:
        """Order of printing: by file, then from top to bottom."""
        return (self.file, self.line or 0, self.path, self.code.value, self.message)

    def __lt__(self, other: Diagnostic) -> bool:
        return self.sort_key < other.sort_key

    def render(self) -> str:
        """Print as `file:line: code: message (accepted: …)`."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        hint = f" (accepted: {self.accepted})" if self.accepted else ""
        return f"{place}: {self.code.value}: {self.message}{hint}"


def ordered(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort and drop repeats, so that two runs over the same bytes print the same."""
    return tuple(sorted(set(found)))


def show_path(path: FieldPath) -> str:
    """Write a place as `io.inputs.narrative` or `schedule.needs[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def line_of(lines: Lines, path: FieldPath) -> int | None:
    """The line of a place, or of the nearest enclosing place that has one."""
    for end in range(len(path), -1, -1):
        if (line := lines.get(path[:end])) is not None:
            return line
    return None


def quoted(value: object) -> str:
    """Show foreign text in a message, bounded and on one line."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[: _SHOWN + 1])
    return f"`{text[:_SHOWN]}…`" if len(text) > _SHOWN else f"`{text}`"
