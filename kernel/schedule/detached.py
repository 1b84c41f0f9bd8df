"""Which detached runtimes may start after the turn. Spec: plugin-model §18."""

from __future__ import annotations

from collections.abc import Sequence

_ISOLATED = ("assets:", "media:", "ui:", "http:")
_OWN_DATA = "plugin-data:self:"


def objection(
    *,
    agent: bool,
    stage: str | None,
    exports: bool,
    writes: Sequence[str] | None,
    waited_for_by: str | None,
) -> str | None:
    """Why a runtime that declares `schedule.detached` has to stay in the turn, or None when it may leave it.

    Args:
        exports: whether its output is recorded.
        writes: its declared effects; None when it declares none.
        waited_for_by: some runtime of the turn that links to it.
    """
    if agent:
        return "only a function can be detached"
    if stage not in ("post-turn", "audit"):
        return "only post-turn and audit runtimes can be detached"
    if waited_for_by is not None:
        return f"{waited_for_by} waits for it"
    if exports:
        return "its output is recorded (recordAs)"
    if writes is None:
        return "it declares no effects"
    foreign = next((effect for effect in writes if not _isolated(effect)), None)
    return f"it writes {foreign}" if foreign else None


def _isolated(effect: str) -> bool:
    if effect.startswith(_OWN_DATA):
        return not effect.removeprefix(_OWN_DATA).startswith("_")
    return effect.startswith(_ISOLATED)
