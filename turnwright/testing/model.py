"""A model that says what a test tells it to, for `ctx.gateway`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kernel.errors import Code
from turnwright.sdk.errors import ToolError

Reply = str | dict[str, Any] | list[Any] | ToolError


class ScriptedModel:
    """Replies in their order; what a call asked stands in `calls`.

    Args:
        replies: a string answers `generate_text`, JSON answers either, a `ToolError` fails the call.
    """

    def __init__(self, replies: Sequence[Reply] = ()) -> None:
        self.calls: list[dict[str, Any]] = []
        self._left = list(replies)

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        """The next reply, as the host gives it.

        Raises:
            ToolError: the scripted one, or `model.unconfigured` when no reply is left.
        """
        self.calls.append(params)
        if not self._left:
            message = f"{method}: call {len(self.calls)} of the test has no scripted reply"
            raise ToolError(Code.MODEL_UNCONFIGURED, message)
        reply = self._left.pop(0)
        if isinstance(reply, ToolError):
            raise reply
        common = {"finishReason": "stop", "usage": {"inputTokens": 0, "outputTokens": 0}}
        if method == "gateway.generate_object":
            return {"object": json.loads(reply) if isinstance(reply, str) else reply, **common}
        return {"text": reply if isinstance(reply, str) else json.dumps(reply), **common}
