"""JSON Pointer, strictly as in RFC 6901. Spec: plugin-model §7."""

from __future__ import annotations

import re
from typing import Final

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json


class Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()
"""The pointer leads to nothing; null is a value."""

_INDEX = re.compile(r"0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile(r"~(?![01])")


def parse(pointer: str) -> tuple[str, ...]:
    """The unescaped tokens of a pointer; '' is the whole document.

    Raises:
        TurnwrightError: `package.field` when it is no JSON Pointer.
    """
    if (pointer and not pointer.startswith("/")) or _BAD_ESCAPE.search(pointer):
        accepted = "a JSON Pointer such as /segments/0, with ~ as ~0 and / as ~1"
        raise TurnwrightError(Code.PACKAGE_FIELD, f"{pointer!r} is no JSON Pointer", accepted=accepted)
    # The order of the two replacements matters: ~01 is the text ~1.
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def select(document: Json, pointer: str) -> Json | Missing:
    """The value a pointer leads to, or MISSING.

    An array index has no sign and no leading zero, and is in range; an object's keys are its own
    properties, whatever they are called.
    """
    value = document
    for token in parse(pointer):
        if isinstance(value, dict):
            value = value.get(token, MISSING)
        elif isinstance(value, list | tuple):
            value = _item(value, token)
        else:
            return MISSING
        if value is MISSING:
            return MISSING
    return value


def _item(items: list[Json] | tuple[Json, ...], token: str) -> Json | Missing:
    # Compare lengths first: a pointer may hold more digits than Python turns into an integer.
    if not _INDEX.fullmatch(token) or len(token) > len(str(len(items))):
        return MISSING
    return items[int(token)] if int(token) < len(items) else MISSING
