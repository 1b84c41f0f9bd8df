"""The recorded histories, the digest that names them, and the CHANGELOG line that must know it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "digests.json"
CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def recorded() -> dict[str, WorkflowHistory]:
    """Every recorded history by name."""
    return {file.stem: load(file.read_text(encoding="utf-8")) for file in files()}


def files() -> list[Path]:
    """The recorded histories."""
    return sorted(file for file in FOLDER.glob("*.json") if file != MANIFEST)


def load(text: str) -> WorkflowHistory:
    """A history as `record` writes it."""
    tree = json.loads(text)
    return WorkflowHistory.from_json(tree["workflow_id"], tree["history"])


def found() -> dict[str, str]:
    """SHA-256 of every history that lies here."""
    return {file.stem: _sha256(file.read_text(encoding="utf-8")) for file in files()}


def accepted() -> dict[str, str]:
    """SHA-256 of every history that was accepted."""
    digests: dict[str, str] = json.loads(MANIFEST.read_text(encoding="utf-8"))
    return digests


def name_of(digests: Mapping[str, str]) -> str:
    """The name of a set of histories, as the CHANGELOG mentions it."""
    return _sha256(json.dumps(dict(sorted(digests.items()))))[:12]


def problem(digests: Mapping[str, str], known: Mapping[str, str], changelog: str) -> str | None:
    """Why these histories are not accepted, or None."""
    if changed := sorted(name for name in {*digests, *known} if digests.get(name) != known.get(name)):
        return f"{', '.join(changed)}: changed by hand; record anew with `python -m tests.histories.record`"
    line = f"({name_of(digests)})"
    if not any(text.startswith("- ") and line in text for text in changelog.splitlines()):
        return f"no line of CHANGELOG.md names the recorded histories {line}; decision 25b asks for one"
    return None


def write(histories: Mapping[str, str], reason: str) -> str:
    """Replace the histories, their digests and the CHANGELOG's line; returns the line."""
    for file in files():
        file.unlink()
    for name, text in histories.items():
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    MANIFEST.write_text(json.dumps(found(), indent=1) + "\n", encoding="utf-8")
    line = f"- Recorded histories ({name_of(found())}): {reason}\n"
    old = CHANGELOG.read_text(encoding="utf-8") if CHANGELOG.exists() else "# Changelog\n"
    CHANGELOG.write_text(_inserted(old, line), encoding="utf-8")
    return line


def meets_in_one_task(history: WorkflowHistory) -> bool:
    """Whether a signal, the end of an activity and an update were handled by one workflow task.

    What came before a task stands between its predecessor's end and its start; the update it accepted
    stands right behind its end.
    """
    before: set[int] = set()
    handled: set[int] = set()
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            handled, before = before, set()
        elif event.event_type in (
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
            EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
        ):
            before.add(event.event_type)
        elif (
            event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED and len(handled) == 2
        ):
            return True
    return False


def _inserted(changelog: str, line: str) -> str:
    """The text with a line before its first list item, newest first; at the end where there is none."""
    lines = changelog.splitlines(keepends=True)
    first = next((n for n, text in enumerate(lines) if text.startswith("- ")), None)
    if first is None:
        return changelog.rstrip("\n") + "\n\n" + line
    return "".join([*lines[:first], line, *lines[first:]])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
