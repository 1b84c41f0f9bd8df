"""The log of a child process, kept over restarts: the last words of one that crashed can still be read."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Final

MOST_BYTES: Final = 4 * 1024 * 1024
"""A larger file is set aside as `<name>.1`, in the place of the one before, when the next run begins."""


class ChildLog:
    """One run's part of a log file: what it says is appended, and told from what others said before."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if _size(file) > MOST_BYTES:
            file.replace(file.with_name(f"{file.name}.1"))
        self.file = file
        self._begin = _size(file)

    def open(self) -> IO[bytes]:
        """The file, for the child to write to."""
        return self.file.open("ab")

    def text(self) -> str:
        """What this run has said so far."""
        try:
            with self.file.open("rb") as log:
                log.seek(self._begin)
                return log.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def tail(self, lines: int) -> str:
        """The last lines of this run, for an error message."""
        return "\n".join(line[:300] for line in self.text().splitlines()[-lines:])


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
