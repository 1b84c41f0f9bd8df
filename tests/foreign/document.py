"""Reads the commands of a document, and compares answers with what it prints beneath them.

    ```sh test              run it; it must succeed
    ```sh test until        run it again and again until it succeeds and gives the answer beneath
    ```sh test refused      it must fail; the text beneath is part of what it says

A `json` block beneath holds the part of the answer that is compared. Ids of turns, jobs and approvals are
learned from the answers and put into the commands that follow.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"\b[taj][0-9a-f]{20}\b")
_TIMES = {"opened_at", "deadline", "started_at", "ended_at"}


@dataclass(frozen=True)
class Step:
    """One command of a document.

    Attributes:
        mode: empty, `until` or `refused`.
        answer: the JSON beneath; None where the document shows none.
        text: the plain text beneath.
    """

    command: str
    mode: str = ""
    answer: Any = None
    text: str = ""

    def words(self, ids: Ids) -> list[str]:
        """The command as a shell would split it, with the ids of this run."""
        return shlex.split(ids.applied(self.command.replace("\\\n", " ")))


@dataclass
class Ids:
    """The ids of the document and those of this run."""

    known: dict[str, str] = field(default_factory=dict)

    def applied(self, text: str) -> str:
        """A text of the document with the ids of this run."""
        return _ID.sub(lambda found: self.known.get(found[0], found[0]), text)

    def differences(self, shown: Any, given: Any, path: str = "$", key: str = "") -> list[str]:
        """Where an answer lacks what the document shows; learns ids where it does not."""
        if isinstance(shown, dict) and isinstance(given, dict):
            missing = [f"{path}.{name} is missing" for name in shown if name not in given]
            parts = (self.differences(shown[n], given[n], f"{path}.{n}", n) for n in shown if n in given)
            return [*missing, *chain.from_iterable(parts)]
        if isinstance(shown, list) and isinstance(given, list) and len(shown) == len(given):
            pairs = enumerate(zip(shown, given, strict=True))
            return [*chain.from_iterable(self.differences(a, b, f"{path}[{i}]") for i, (a, b) in pairs)]
        if key in _TIMES and isinstance(given, float):
            return []
        if isinstance(shown, str) and isinstance(given, str):
            self._learn(shown, given)
            shown = self.applied(shown)
        return [] if shown == given else [f"{path}: {shown!r} is shown, {given!r} came"]

    def _learn(self, shown: str, given: str) -> None:
        if _ID.sub("*", shown) == _ID.sub("*", given):
            for old, new in zip(_ID.findall(shown), _ID.findall(given), strict=True):
                self.known.setdefault(old, new)


def steps(document: Path) -> Iterator[Step]:
    """The tested commands of a document, in order."""
    blocks = [(info.split(), body) for info, body in _BLOCK.findall(document.read_text(encoding="utf-8"))]
    for (info, body), (below, shown) in zip(blocks, [*blocks[1:], ([], "")], strict=True):
        if info[:2] != ["sh", "test"]:
            continue
        answer = json.loads(shown) if below == ["json"] else None
        text = shown.strip() if below == ["text"] else ""
        yield Step(body.strip(), "".join(info[2:]), answer, text)
