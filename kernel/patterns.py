"""Regular expressions that packages write, matched in linear time whatever they say.

Python's own engine can be made to run for years by a short pattern and a short text. RE2 has no look-around
and no back-references; a pattern that needs them is refused where it stands.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_MAX_LENGTH = 2_000


def fault(pattern: str) -> str:
    """Why a pattern cannot be used; empty when it can."""
    if len(pattern) > _MAX_LENGTH:
        return f"is longer than {_MAX_LENGTH} characters"
    try:
        _compiled(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return ""


def found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text; the pattern has no `fault`."""
    return _compiled(pattern).search(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
