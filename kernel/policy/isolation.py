"""How far the code of a package that is not bundled is kept apart from everything else. DECISIONS 25."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal

Layer = Literal["limits", "privileges", "files", "system-calls"]
Level = Literal["process", "partial", "sealed"]

LAYERS: Final[Mapping[Layer, str]] = {
    "limits": "memory, open files and file sizes are bounded",
    "privileges": "an ordinary user, or the superuser without any capability; none can be gained",
    "files": "nothing can be read but the package, Python and its libraries, and nothing written",
    "system-calls": "no network, no further processes, no signals, nothing of other processes",
}
"""What stands between the code and the machine, beside the process of its own and its empty environment."""

LEVELS: Final[tuple[Level, ...]] = ("process", "partial", "sealed")
"""From the weakest: a process of its own; some layers of the system's too; all of them."""

_SYSTEM: Final = frozenset({"files", "system-calls"})


def level_of(applied: Collection[Layer]) -> Level:
    """The level that the layers in force make."""
    if LAYERS.keys() <= set(applied):
        return "sealed"
    return "partial" if _SYSTEM & set(applied) else "process"


def suffices(level: Level, minimum: Level) -> bool:
    """Whether a level is at least the one that is asked for."""
    return LEVELS.index(level) >= LEVELS.index(minimum)
