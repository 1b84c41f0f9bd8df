"""The seats of hooks."""

from __future__ import annotations

from kernel.schedule import subscribers
from kernel.wire.hooks import HookSubscription


def test_a_seat_finds_its_subscribers_by_group_then_registration() -> None:
    hooks = [
        HookSubscription(package_id="a", event="TurnStart", enforce="post"),
        HookSubscription(package_id="b", event="TurnStop"),
        HookSubscription(package_id="c", event="TurnStart"),
        HookSubscription(package_id="d", event="TurnStart", enforce="pre"),
        HookSubscription(package_id="e", event="TurnStart"),
    ]
    assert [hook.package_id for hook in subscribers(hooks, "TurnStart")] == ["d", "c", "e", "a"]
    assert subscribers(hooks, "PreRuntime") == ()
