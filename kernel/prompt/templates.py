"""`{{ root.name }}` in a runtime's body, replaced once; values are never read as templates again.

Spec: plugin-model §11.5.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_PLACE = re.compile(r"\{\{\s*([A-Za-z][A-Za-z0-9_.-]*)\s*\}\}")

ROOTS = ("player.message", "session.id", "session.turnNumber")
"""Every value that any body may name in this version, besides `userSettings.<key>` of its own package."""


def interpolate(body: str, values: Mapping[str, str]) -> str:
    """The body with known places filled in."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), body)


def unknown_places(body: str, settings: Collection[str] = ()) -> tuple[str, ...]:
    """Places of a body that this version cannot fill, in order.

    Args:
        settings: the places of the package's own settings, `userSettings.<key>`.
    """
    return tuple(place for place in _PLACE.findall(body) if place not in ROOTS and place not in settings)
