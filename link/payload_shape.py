"""Looks at payload bytes: is their JSON too deep, and which part of it is the largest?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

MAX_DEPTH: Final = 100
"""Deepest nesting of a payload. The parser stops at 200, the serializer and plain recursion a little
later; a value that came in must still go out inside another one."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")


def shape_fault(data: bytes) -> str | None:
    """What makes this JSON unusable beyond its syntax, or None."""
    deep = data.count(b"[") + data.count(b"{") > MAX_DEPTH
    constants = b"NaN" in data or b"Infinity" in data
    if not deep and not constants:
        return None
    bare = _STRING.sub(b"", data)
    if deep and _depth(bare) > MAX_DEPTH:
        return f"is nested deeper than {MAX_DEPTH} levels"
    if constants and (b"NaN" in bare or b"Infinity" in bare):
        return "holds NaN or Infinity, which JSON has not"
    return None


def largest_part(value: Any, data: bytes) -> str:
    """The path of the part that makes a payload large, as `Submit.payload.items[3]`.

    The path goes down while one child is at least half of its parent.
    """
    name = type(value).__name__
    try:
        tree = json.loads(data)
        return name + _heaviest(tree)[1]
    except (ValueError, RecursionError):
        return name


def _heaviest(node: Any) -> tuple[int, str]:
    """The size of a node, and the path below it to the part that dominates it."""
    total, most, path = 2, 0, ""
    for step, child in _children(node):
        size, below = _heaviest(child)
        total += size + len(step)
        if size > most:
            most, path = size, step + below
    if not isinstance(node, dict | list):
        return len(node) + 2 if isinstance(node, str) else 8, ""
    return total, path if most * 2 >= total else ""


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for key, child in node.items():
            yield (f".{key}" if _KEY.fullmatch(key) else f"[{key[:60]!r}]"), child
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield f"[{index}]", child


def _depth(bare: bytes) -> int:
    depth = deepest = 0
    for match in _BRACKET.finditer(bare):
        depth += 1 if match[0] in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
