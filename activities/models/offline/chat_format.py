"""The server's side of `/chat/completions`: one answer as streamed events or as one JSON object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True)
class CallAnswer:
    """One tool call of an answer; `id` and `name` may be None, as bad servers send them."""

    id: str | None
    name: str | None
    arguments: str


@dataclass(frozen=True)
class ChatAnswerParts:
    """A whole answer, before it is cut into chunks."""

    model: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[CallAnswer, ...] = ()
    finish: str | None = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


def words(text: str) -> list[str]:
    """The text in pieces that join to it again, one word each."""
    return _WORD.findall(text)


def stream_events(answer: ChatAnswerParts, *, id_: str = "chatcmpl-offline") -> Iterator[bytes]:
    """The answer as server-sent events: a word at a time, the finish reason, the usage, `[DONE]`."""
    yield _event(_chunk(answer, id_, {"role": "assistant", "content": ""}))
    for piece in words(answer.reasoning):
        yield _event(_chunk(answer, id_, {"reasoning_content": piece}))
    for piece in words(answer.text):
        yield _event(_chunk(answer, id_, {"content": piece}))
    for index, call in enumerate(answer.calls):
        for delta in _call_deltas(index, call):
            yield _event(_chunk(answer, id_, {"tool_calls": [delta]}))
    yield _event(_chunk(answer, id_, {}, finish=answer.finish))
    yield _event({**_frame(answer, id_, "chat.completion.chunk"), "choices": [], "usage": usage(answer)})
    yield b"data: [DONE]\n\n"


def whole_answer(answer: ChatAnswerParts, *, id_: str = "chatcmpl-offline") -> bytes:
    """The answer as one JSON object."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_whole_call(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    frame = _frame(answer, id_, "chat.completion")
    return json.dumps({**frame, "choices": [choice], "usage": usage(answer)}).encode()


def usage(answer: ChatAnswerParts) -> dict[str, int]:
    """The usage object."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def error_body(kind: str, message: str, **more: Any) -> bytes:
    """An error object as OpenAI writes it."""
    return json.dumps({"error": {"message": message, "type": kind, **more}}).encode()


def _call_deltas(index: int, call: CallAnswer, size: int = 24) -> Iterator[dict[str, Any]]:
    function = {"name": call.name, "arguments": ""}
    yield {"index": index, "id": call.id, "type": "function", "function": function}
    for piece in _pieces(call.arguments, size):
        yield {"index": index, "function": {"arguments": piece}}


def _pieces(text: str, size: int) -> Sequence[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _whole_call(call: CallAnswer) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chunk(
    answer: ChatAnswerParts, id_: str, delta: dict[str, Any], *, finish: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_frame(answer, id_, "chat.completion.chunk"), "choices": [choice]}


def _frame(answer: ChatAnswerParts, id_: str, kind: str) -> dict[str, Any]:
    # A fixed time: equal questions give equal bytes.
    return {"id": id_, "object": kind, "created": 0, "model": answer.model}


def _event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
