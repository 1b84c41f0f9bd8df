"""Breaks text that arrives in pieces into lines, without waiting for the end of anything but a word."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\n+|[^\S\n]+|\S+")


class Wrapper:
    """Feed it text, write what it returns.

    Args:
        width: most characters of a line, the margin included; a longer word stands alone.
        margin: what every line begins with.
    """

    def __init__(self, width: int, margin: str = "") -> None:
        self._room = max(20, width - len(margin))
        self._margin = margin
        self._column = 0
        self._word = ""
        self._newlines = 0
        self._begun = False

    def feed(self, text: str) -> str:
        """What can be written now; the last word waits, for it may go on."""
        out = ""
        for token in _TOKEN.findall(text):
            if token.isspace():
                out += self._place() + self._break(token)
            else:
                self._word += token
        return out

    def close(self) -> str:
        """The rest, with the end of its line."""
        out = self._place()
        if self._column:
            out += "\n"
        self._column = 0
        return out

    def _place(self) -> str:
        word, self._word = self._word, ""
        if not word:
            return ""
        self._begun, self._newlines = True, 0
        if self._column == 0:
            self._column = len(word)
            return self._margin + word
        if self._column + 1 + len(word) <= self._room:
            self._column += 1 + len(word)
            return " " + word
        self._column = len(word)
        return f"\n{self._margin}{word}"

    def _break(self, token: str) -> str:
        """End the line at a newline; several, however they arrive, leave one empty line."""
        if "\n" not in token or not self._begun:
            return ""
        before = self._newlines
        self._newlines += token.count("\n")
        out = "\n" if self._column else ""
        self._column = 0
        return out + (self._margin.rstrip() + "\n" if before < 2 <= self._newlines else "")
