"""The seats of hooks: who is subscribed to an event. Spec: plugin-model §16.

A seat without a subscriber schedules nothing and costs no event. In this version every seat is empty:
activation refuses a package that declares `contributes.hooks`.

`Turn` and `Agent` hold the seats of the events below. `PostContextAssembly` has none there: a prompt is
assembled inside `call_model`, which knows the generation and so the subscriptions. The events of sessions and
of compaction have none yet: their inputs are not ours to freeze.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kernel.wire.hooks import HookSubscription

Event = Literal[
    "TurnStart",
    "PreSchedule",
    "PreRuntime",
    "PostRuntime",
    "TurnStop",
    "PreStateCommit",
    "PostStateCommit",
    "PreLLMCall",
    "PostLLMResponse",
    "PreToolUse",
    "PostToolUse",
]
"""Events with a seat in a workflow; the last four are an agent's."""

_GROUPS = ("pre", "normal", "post")


def subscribers(hooks: Sequence[HookSubscription], event: Event) -> tuple[HookSubscription, ...]:
    """The hooks of an event in the order they run: by group, then as registered."""
    own = [hook for hook in hooks if hook.event == event]
    return tuple(sorted(own, key=lambda hook: _GROUPS.index(hook.enforce)))
