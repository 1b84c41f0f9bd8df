"""The chat-completions answer as a state machine: JSON objects in, wire events out; no I/O.

Servers that copy the protocol bend it. What is tolerated: missing or repeated call ids, missing or constant
call indexes, names repeated in every chunk, arguments as objects, contents as part lists, surrogate pairs
split between chunks. What is not: a stream that never says that it ended.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from activities.models.tool_names import ToolNames
from kernel.agent.messages import (
    Finish,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    clean_text,
)
from kernel.agent.tool_arguments import unterminated

Event = TextDelta | ReasoningDelta | ToolCallDelta | Finished

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
}


class ChatAnswer:
    """One answer in the making.

    `finished` turns true with a finish reason, `done` with `[DONE]`; either makes the answer complete.
    """

    def __init__(self, names: ToolNames, model: str) -> None:
        self._calls = _CallTracker(names)
        self._text = _Joiner()
        self._reasoning = _Joiner()
        self._model = model
        self._finish: Finish | None = None
        self.refusal = ""
        self.usage = Usage()
        self.done = False
        self.answering = False
        self.shown_text = False

    @property
    def finished(self) -> bool:
        return self._finish is not None

    @property
    def complete(self) -> bool:
        return self.finished or self.done

    @property
    def failed(self) -> bool:
        """Whether the finish reason itself is an error."""
        return self._finish == "error"

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        """The events of one chunk, or of a whole unstreamed answer."""
        self.usage = _usage(chunk.get("usage")) or self.usage
        self._model = _string(chunk.get("model")) or self._model
        choice = _first_choice(chunk)
        delta = choice.get("delta") or choice.get("message")
        for event in self._delta(delta if isinstance(delta, Mapping) else {}):
            self.answering = True
            self.shown_text = self.shown_text or (isinstance(event, TextDelta) and bool(event.text.strip()))
            yield event
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish = _FINISHES.get(reason.lower(), "other")

    def end(self) -> Iterator[Event]:
        """The last events: what was held back, then the end."""
        if rest := self._text.rest():
            yield TextDelta(text=rest)
        if rest := self._reasoning.rest():
            yield ReasoningDelta(text=rest)
        yield from self._calls.rest()
        yield Finished(finish=self._finish or "other", usage=self.usage, model=self._model)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        thinking, text = _content(delta.get("content"))
        thinking = (
            _string(delta.get("reasoning_content")) or _string(delta.get("reasoning")) or ""
        ) + thinking
        if part := self._reasoning.join(thinking):
            yield ReasoningDelta(text=part)
        if part := self._text.join(text):
            yield TextDelta(text=part)
        self.refusal += _string(delta.get("refusal"))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping):
                yield self._calls.take(call)


class _CallTracker:
    """Which call a fragment belongs to."""

    def __init__(self, names: ToolNames) -> None:
        self._names = names
        self._ids: list[str] = []
        self._called: list[str] = []
        self._raw: list[str] = []
        self._slots: dict[int, int] = {}
        self._arguments: defaultdict[int, _Joiner] = defaultdict(_Joiner)

    def take(self, fragment: Mapping[str, Any]) -> ToolCallDelta:
        function = fragment.get("function")
        function = function if isinstance(function, Mapping) else {}
        id_, name = _string(fragment.get("id")), clean_text(_string(function.get("name")))
        arguments = _arguments(function.get("arguments"))
        position = self._position(fragment.get("index"), id_, name, arguments)
        self._ids[position] = self._ids[position] or id_
        known, self._called[position] = self._called[position], self._called[position] or name
        return ToolCallDelta(
            index=position,
            id=id_,
            name="" if known else self._names.original(name),
            arguments=self._joined(position, arguments),
        )

    def rest(self) -> Iterator[ToolCallDelta]:
        for position, joiner in self._arguments.items():
            if rest := joiner.rest():
                yield ToolCallDelta(index=position, arguments=rest)

    def _joined(self, position: int, arguments: str) -> str:
        part = self._arguments[position].join(arguments)
        self._raw[position] += part
        return part

    def _position(self, index: Any, id_: str, name: str, arguments: str) -> int:
        """The call's place in the answer; a fragment that cannot belong to an open call opens one."""
        if isinstance(index, int) and not isinstance(index, bool) and index >= 0:
            at = self._slots.get(index)
            # Some servers give every parallel call index 0.
            if at is None or self._is_another(at, id_, name) or (arguments and self._restarts(at, id_, name)):
                at = self._slots[index] = self._open()
            return at
        last = len(self._ids) - 1
        if last < 0 or self._is_another(last, id_, name) or self._restarts(last, id_, name):
            return self._open()
        return last

    def _is_another(self, position: int, id_: str, name: str) -> bool:
        known = self._ids[position]
        return bool(name and id_ and known and id_ != known)

    def _restarts(self, position: int, id_: str, name: str) -> bool:
        """Whether an id-less fragment names a call although the open one is not in mid-argument."""
        if id_ or not name or not self._called[position]:
            return False
        writing = self._raw[position].strip() and unterminated(self._raw[position])
        return not (writing and name == self._called[position])

    def _open(self) -> int:
        self._ids.append("")
        self._called.append("")
        self._raw.append("")
        return len(self._ids) - 1


class _Joiner:
    """Hold back half a surrogate pair until its other half comes."""

    def __init__(self) -> None:
        self._half = ""

    def join(self, text: str) -> str:
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean_text(text)

    def rest(self) -> str:
        return clean_text(self._half)


def _first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and choice.get("index") in (0, None):
            return choice
    return {}


def _content(content: Any) -> tuple[str, str]:
    """Thinking and text of a content, which is a string or a list of parts."""
    if not isinstance(content, list):
        return "", _string(content)
    parts = [part for part in content if isinstance(part, Mapping)]
    thinking = [_part(part.get("thinking")) for part in parts if part.get("type") == "thinking"]
    return "".join(thinking), "".join(_string(part.get("text")) for part in parts)


def _part(value: Any) -> str:
    return _content(value)[1]


def _arguments(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return _string(value)


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, Mapping):
        return None
    counts = [_count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))]
    if None in counts:
        return None
    details = value.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    if cached is None:
        cached = _count(value.get("prompt_cache_hit_tokens"))
    return Usage(
        input_tokens=counts[0] or 0, output_tokens=counts[1] or 0, cached_tokens=cached or 0, reported=True
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
