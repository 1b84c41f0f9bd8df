"""Tool names as providers accept them, and back.

One name with a dot, a slash or 65 characters makes a provider refuse the whole request, so every name is
mapped to `^[a-zA-Z0-9_-]{1,64}$`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_SAFE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNSAFE_CHARS = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64


def readable_safe_name(name: str) -> str:
    """The name with every refused character as `_`, cut to 64; not unique by itself."""
    return _UNSAFE_CHARS.sub("_", name)[:_LONGEST] or "_"


class ToolNames:
    """A bijection between the names of one request and safe ones.

    It depends on the set of names alone, not on their order. A safe name stays as it is.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._safe: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for name in sorted(set(names), key=lambda one: (not _SAFE.fullmatch(one), one)):
            safe = readable_safe_name(name)
            if safe != name and (safe in self._names or len(name) > _LONGEST):
                safe = _with_digest(name)
            self._safe[name] = safe
            self._names[safe] = name

    def safe(self, name: str) -> str:
        """The safe name; a name from outside the request is only made acceptable."""
        return self._safe.get(name) or readable_safe_name(name)

    def original(self, safe: str) -> str:
        """The name behind a safe one; what the model invented comes back unchanged."""
        return self._names.get(safe, safe)


def _with_digest(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{readable_safe_name(name)[:55]}_{digest}"
