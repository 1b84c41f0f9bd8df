"""Server-sent events from bytes, by the letter: only CR, LF and CRLF end a line.

httpx-sse before 0.4.2 splits on every Unicode line boundary, and no version bounds an event's size; both
matter here, so the forty lines are our own.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

MAX_EVENT_CHARS = 4 * 1024 * 1024


@dataclass(frozen=True)
class ServerEvent:
    """One event: its name (empty when the stream gave none) and its joined data lines."""

    name: str
    data: str


class EventTooLarge(Exception):
    """An event passed `MAX_EVENT_CHARS`."""


class SseDecoder:
    """Bytes in, events out; where the bytes are split makes no difference."""

    def __init__(self, max_event_chars: int = MAX_EVENT_CHARS) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._max = max_event_chars
        self._line: list[str] = []
        self._after_cr = False
        self._started = False
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """The events that `data` completes.

        Raises:
            EventTooLarge: one event passes the limit.
        """
        text = self._decode(data)
        if text and not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        if text and self._after_cr:
            text = text.removeprefix("\n")
            self._after_cr = False
        yield from self._split(text)

    def _split(self, text: str) -> Iterator[ServerEvent]:
        if not text:
            return
        self._after_cr = text.endswith("\r")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines[:-1]:
            self._grow(line)
            whole = "".join(self._line)
            self._line.clear()
            yield from self._take(whole)
        self._grow(lines[-1])

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > self._max:
            raise EventTooLarge
        self._line.append(piece)

    def _take(self, line: str) -> Iterator[ServerEvent]:
        if not line:
            if self._data:
                yield ServerEvent(self._name, "\n".join(self._data))
            self._name, self._data, self._size = "", [], 0
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif not name:  # a comment, the usual sign of life: it must not fill the event's measure
            self._size = sum(map(len, self._data))
