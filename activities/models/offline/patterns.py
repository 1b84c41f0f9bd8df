"""A text that matches a regular expression, for the patterns that schemas really use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_CATEGORY = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}
_PREFERRED = "a1A_-. 0z"
_MOST_REPEATS = 64


def matching(pattern: str, candidates: Iterable[str]) -> str | None:
    """The first candidate that matches, else a text built from the pattern; None when neither does."""
    try:
        compiled = re.compile(pattern)
        for candidate in candidates:
            if compiled.search(candidate):
                return candidate
        built = _sequence(re._parser.parse(pattern))  # type: ignore[attr-defined]
    except (re.error, RecursionError, OverflowError):
        return None
    return built if compiled.search(built) else None


def _sequence(items: Any) -> str:
    return "".join(_item(str(kind), value) for kind, value in items)


def _item(kind: str, value: Any) -> str:
    match kind:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return next(char for char in _PREFERRED if ord(char) != value)
        case "ANY":
            return "a"
        case "IN":
            return _one_of(value)
        case "CATEGORY":
            return _CATEGORY.get(str(value), "-")
        case "BRANCH":
            return _sequence(value[1][0])
        case "SUBPATTERN":
            return _sequence(value[3])
        case "ATOMIC_GROUP":
            return _sequence(value)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, inner = value
            return _sequence(inner) * min(max(int(least), min(1, int(most))), _MOST_REPEATS)
        case _:  # anchors and look-arounds write nothing
            return ""


def _one_of(members: Any) -> str:
    negated = str(members[0][0]) == "NEGATE"
    if negated:
        return next((char for char in _PREFERRED if not _holds(members[1:], char)), "~")
    preferred = next((char for char in _PREFERRED if _holds(members, char)), None)
    if preferred is not None:
        return preferred
    kind, value = members[0]
    return chr(value[0]) if str(kind) == "RANGE" else _item(str(kind), value)


def _holds(members: Any, char: str) -> bool:
    return any(_is_member(str(kind), value, char) for kind, value in members)


def _is_member(kind: str, value: Any, char: str) -> bool:
    match kind:
        case "LITERAL":
            return bool(ord(char) == value)
        case "RANGE":
            return bool(value[0] <= ord(char) <= value[1])
        case "CATEGORY":
            name = str(value)
            inverted = "_NOT_" in name
            plain = {"DIGIT": char.isdigit(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}
            return plain[name.rsplit("_", 1)[-1]] != inverted
        case _:
            return False
