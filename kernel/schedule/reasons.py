"""Why a node did not run or did not count, and what the planner found worth telling: two closed lists.

A failed node carries an error code (`kernel.errors.Code`) instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SkipReason(StrEnum):
    """Why a node was skipped, or its success not committed. Spec: plugin-model §5, §20."""

    DEPENDENCY_CYCLE = "dependency-cycle"
    """Member of a cycle across packages, or behind one (DECISIONS 2)."""
    UPSTREAM_NOT_SUCCESS = "upstream-not-success"
    """A `needs` whose upstream failed, was skipped, is suspended, or did not run in this turn."""
    INPUT_MISSING = "input-missing"
    """A required input without a value; upstream as above."""
    GUARD = "guard"
    """The runtime's own guard said so."""
    HOOK = "hook"
    """A `PreRuntime` hook stopped it."""
    TURN_STOPPED = "turn-stopped"
    """The turn ended before its turn came."""
    UPSTREAM_DROPPED = "upstream-dropped"
    """It succeeded, but a hard upstream was dropped at commit (spec §20, step 4)."""


class Finding(StrEnum):
    """What the planner reports to people; none of these stops a turn."""

    CYCLE = "cycle"
    ALTERNATIVE_DROPPED = "alternative-dropped"
    LATER_STAGE = "later-stage"
    HAZARD = "hazard"
    NOT_DETACHED = "not-detached"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding, the runtimes it is about, and a sentence for people."""

    finding: Finding
    runtimes: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return self.message
