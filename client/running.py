"""The note that a running development stack leaves in its home, so that other commands find it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from link.settings import Settings

NAME: Final = "dev.json"


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


def write(home: Path, note: Running) -> None:
    """Leave the note; readers see it whole."""
    draft = home / f".{NAME}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(note), indent=2) + "\n", encoding="utf-8")
    draft.replace(home / NAME)


def remove(home: Path) -> None:
    """Take the note back, when it is this process's."""
    note = read(home)
    if note and note.pid == os.getpid():
        (home / NAME).unlink(missing_ok=True)


def read(home: Path) -> Running | None:
    """The note of a process that lives, or None."""
    try:
        note = Running(**json.loads((home / NAME).read_text(encoding="utf-8")))
        os.kill(note.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return note


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
