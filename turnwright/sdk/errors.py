"""The one exception that package code raises on purpose, and meets when a call is refused."""

from __future__ import annotations


class ToolError(Exception):
    """A failure with a code, for the caller to decide on.

    Raised by package code, it ends the tool or handler with this code; a refused call of `ctx` raises it
    too, with the host's code (`tool.denied`, `model.unconfigured`, `handler.capability`, …).

    Args:
        code: a short word or dotted code: `unavailable`, `not-found`, `conflict`.
        message: what was refused, and what would be accepted.
    """

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
        self.message = message
