"""Which detached runtimes may start after the turn. Spec: plugin-model §18."""

from __future__ import annotations

from kernel.wire.turn import RuntimePlan

_ISOLATED = ("assets:", "media:", "ui:", "http:")
_OWN_DATA = "plugin-data:self:"


def objection(plan: RuntimePlan, waited_for_by: str | None) -> str | None:
    """Why a detached runtime has to stay in the turn, or None when it may leave it.

    Args:
        plan: a runtime that declares `schedule.detached`.
        waited_for_by: some node of the turn that links to it.
    """
    if plan.agent is not None:
        return "only a function can be detached"
    if plan.stage not in ("post-turn", "audit"):
        return "only post-turn and audit runtimes can be detached"
    if waited_for_by is not None:
        return f"{waited_for_by} waits for it"
    if plan.exports:
        return "its output is recorded (recordAs)"
    if not plan.declares_effects:
        return "it declares no effects"
    foreign = next((effect for effect in plan.writes if not _isolated(effect)), None)
    return f"it writes {foreign}" if foreign else None


def _isolated(effect: str) -> bool:
    if effect.startswith(_OWN_DATA):
        return not effect.removeprefix(_OWN_DATA).startswith("_")
    return effect.startswith(_ISOLATED)
