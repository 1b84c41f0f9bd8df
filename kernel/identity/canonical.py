"""Canonical JSON: one text for one value. RFC 8785 (JCS). Spec: engine §4.

One step beyond JCS: an integer that a double cannot hold keeps all of its digits. JCS would round it,
and two different ids would share one key.
"""

from __future__ import annotations

import json
import math

import rfc8785

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json

MAX_DEPTH = 100
"""Deepest nesting; well below what Python's own stack allows."""

_EXACT = 2**53 - 1
_MAX_DIGITS_BITS = 4096


def canonical_json(value: Json) -> str:
    """The canonical text of a JSON value: no spaces, keys in UTF-16 order, ECMAScript numbers.

    Raises:
        TurnwrightError: `wire.malformed`, naming the place, for a number that is not finite, a lone
            surrogate, a key that is no string, nesting beyond MAX_DEPTH, or a value that is no JSON.
    """
    return _write(value, "", 0)


def _write(value: Json, where: str, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise _refuse(where, f"nesting deeper than {MAX_DEPTH}")
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, int | float):
        return _number(value, where)
    if isinstance(value, list | tuple):
        items = (_write(item, f"{where}/{place}", depth + 1) for place, item in enumerate(value))
        return f"[{','.join(items)}]"
    if isinstance(value, dict):
        return _members(value, where, depth)
    raise _refuse(where, f"{type(value).__name__} is no JSON")


def _members(value: dict[str, Json], where: str, depth: int) -> str:
    written = []
    for key, item in value.items():
        if not isinstance(key, str):
            raise _refuse(where, f"the key {key!r} is no string")
        place = f"{where}/{key.replace('~', '~0').replace('/', '~1')}"
        name = _text(key, where)
        written.append((key.encode("utf-16-be"), f"{name}:{_write(item, place, depth + 1)}"))
    return "{" + ",".join(member for _, member in sorted(written)) + "}"


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refuse(where, "a lone surrogate is no text") from None
    return json.dumps(value, ensure_ascii=False)


def _number(value: float, where: str) -> str:
    if isinstance(value, int):
        if abs(value) > _EXACT and value.bit_length() > _MAX_DIGITS_BITS:
            raise _refuse(where, "an integer with more than 1,200 digits")
        return str(int(value))
    if not math.isfinite(value):
        raise _refuse(where, f"{value} is no JSON number")
    return rfc8785.dumps(value).decode()


def _refuse(where: str, what: str) -> TurnwrightError:
    return TurnwrightError(Code.WIRE_MALFORMED, f"no canonical JSON: {what}", where=where or "the value")
