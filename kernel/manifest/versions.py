"""Versions and version ranges: `>= > <= < =` with X.Y.Z, a space means and. Spec: plugin-model §28."""

from __future__ import annotations

import re
from typing import Final

DIALECT_VERSION: Final = "0.0.51"
"""The version of the manifest dialect that is implemented; `covel:` is checked against it."""

PRODUCT_VERSION: Final = "0.0.1"
"""The version `turnwright:` is checked against when the caller names none."""

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}")
# A range may leave trailing numbers out: `>=0.1` is `>=0.1.0`.
_COMPARISON = re.compile(rf"(>=|<=|>|<|=)({_NUMBER}(?:\.{_NUMBER}){{0,2}})")
_MAX_TEXT = 200


def is_version(text: str) -> bool:
    """Whether the text is X.Y.Z."""
    return _VERSION.fullmatch(text) is not None


def is_range(text: str) -> bool:
    """Whether the text is a range; `^`, `~`, `||` and pre-releases are not."""
    parts = text[: _MAX_TEXT + 1].split()
    return 0 < len(text) <= _MAX_TEXT and bool(parts) and all(_COMPARISON.fullmatch(p) for p in parts)


def in_range(version: str, text: str) -> bool:
    """Whether a version satisfies every comparison of a range."""
    return all(_holds(_numbers(version), part) for part in text.split())


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split("."))
    return numbers + (0,) * (3 - len(numbers))


def _holds(version: tuple[int, ...], comparison: str) -> bool:
    match = _COMPARISON.fullmatch(comparison)
    if match is None:
        return False
    bound = _numbers(match[2])
    return {
        ">=": version >= bound,
        "<=": version <= bound,
        ">": version > bound,
        "<": version < bound,
        "=": version == bound,
    }[match[1]]
