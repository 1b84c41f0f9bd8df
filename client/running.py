"""The note that a running development stack leaves in its home, so that other commands find it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from link.settings import Settings

NAME: Final = "dev.json"
LOCK: Final = "dev.lock"


@dataclass(frozen=True)
class Running:
    """What runs under a home.

    Attributes:
        pid: the process that started it and stops it on SIGTERM.
        address: of the Temporal server.
        store_url: database that the worker writes to.
        model_url: base URL of the offline model, or None where real slots are configured.
    """

    pid: int
    address: str
    ui_url: str | None
    store_url: str
    worker_log: str
    model_url: str | None = None


@contextmanager
def announced(home: Path, note: Running) -> Iterator[None]:
    """Leave the note while the block runs; readers see it whole, and by its lock that it is alive."""
    with (home / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft = home / f".{NAME}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(note), indent=2) + "\n", encoding="utf-8")
        draft.replace(home / NAME)
        try:
            yield
        finally:
            (home / NAME).unlink(missing_ok=True)


def read(home: Path) -> Running | None:
    """The note of a process that lives, or None."""
    try:
        note = Running(**json.loads((home / NAME).read_text(encoding="utf-8")))
        return note if _held(home / LOCK) else None
    except (OSError, ValueError, TypeError):
        return None


def _held(file: Path) -> bool:
    """Whether the writer lives: a process id alone may be somebody else's by now."""
    with file.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def found(settings: Settings) -> Settings:
    """The settings, with the address of what runs under this home where none is configured."""
    note = read(settings.home)
    if note is None or "address" in settings.temporal.model_fields_set:
        return settings
    temporal = settings.temporal.model_copy(update={"address": note.address})
    store = (
        settings.store if settings.store.url else settings.store.model_copy(update={"url": note.store_url})
    )
    return settings.model_copy(update={"temporal": temporal, "store": store})
