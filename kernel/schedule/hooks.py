"""The seats of hooks: who is subscribed to an event. Spec: plugin-model §16.

A seat without a subscriber schedules nothing and costs no event. In this version every seat is empty:
activation refuses a package that declares `contributes.hooks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kernel.wire.turn import HookSubscription

TurnEvent = Literal["TurnStart", "PreSchedule", "PreRuntime", "PostRuntime", "PreStateCommit", "TurnStop"]
"""Events of a turn that are not the loop's own."""

_GROUPS = ("pre", "normal", "post")


def subscribers(hooks: Sequence[HookSubscription], event: TurnEvent) -> tuple[HookSubscription, ...]:
    """The hooks of an event in the order they run: by group, then as registered."""
    own = [hook for hook in hooks if hook.event == event]
    return tuple(sorted(own, key=lambda hook: _GROUPS.index(hook.enforce)))
