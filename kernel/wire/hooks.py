"""Who listens to the moments of a turn and of its agents."""

from __future__ import annotations

from typing import Literal

from kernel.wire.base import Wire


class HookSubscription(Wire):
    """A package that listens to an event."""

    package_id: str
    event: str
    enforce: Literal["pre", "normal", "post"] = "normal"
