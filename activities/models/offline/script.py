"""Replies that are written beforehand for single runtimes; the others get the model's own.

POST /script    {"<runtime id>": [{"content", "finishReason", "toolCalls", "usage"}, …]}: begin anew
GET  /calls     every call since then: {"runtime", "request", "reply"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from activities.models.offline.chat_format import CallAnswer, ChatAnswerParts

MODEL_NAME = "scripted"


class Exhausted(Exception):
    """A runtime called the model once more than there are replies."""


class Script:
    """The replies that are left, and the calls that were made."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self._replies: dict[str, list[Any]] = {}
        self._begun = False

    def begin(self, replies: Mapping[str, Any]) -> None:
        """Forget what was, and take these replies."""
        self.calls, self._begun = [], True
        self._replies = {runtime: list(answers) for runtime, answers in replies.items()}

    def take(self, key: str) -> ChatAnswerParts | None:
        """The next reply to the runtime of an idempotency key; None for one without a script.

        Raises:
            Exhausted: its replies are used up.
        """
        runtime = runtime_of(key)
        replies = self._replies.get(runtime)
        if replies is None:
            return None
        if not replies:
            count = sum(call["runtime"] == runtime for call in self.calls)
            raise Exhausted(f"{runtime} called the model more often than the case has replies ({count})")
        return _parts(replies.pop(0))

    def note(self, key: str, request: Any, reply: ChatAnswerParts | None) -> None:
        """Keep a call for whoever asks, once somebody began."""
        if not self._begun:
            return
        said = None if reply is None else _said(reply)
        self.calls.append({"runtime": runtime_of(key), "request": request, "reply": said})


def runtime_of(key: str) -> str:
    """The runtime that an idempotency key names: `<turn or job>/<runtime>/<ordinal>`."""
    return "/".join(unquote(key).split("/")[1:-1])


def _parts(reply: Mapping[str, Any]) -> ChatAnswerParts:
    calls = tuple(
        CallAnswer(call.get("id") or f"call_{number}", call["name"], call.get("arguments", "{}"))
        for number, call in enumerate(reply.get("toolCalls", ()), 1)
    )
    usage = reply.get("usage", {})
    return ChatAnswerParts(
        model=MODEL_NAME,
        text=reply.get("content", ""),
        calls=calls,
        finish=reply.get("finishReason") or ("tool_calls" if calls else "stop"),
        prompt_tokens=usage.get("promptTokens", 0),
        completion_tokens=usage.get("completionTokens", 0),
    )


def _said(reply: ChatAnswerParts) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in reply.calls]
    return {"content": reply.text, "toolCalls": calls, "finishReason": reply.finish}
