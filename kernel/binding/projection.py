"""What a model is spared of a record: ids and times that only book-keeping needs. Spec: plugin-model §7.

Name and value must both match, so a story's own `arrivedAt: "at dawn"` stays. Code sees full records.
"""

from __future__ import annotations

import re

from kernel.wire.base import Json

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_ISO_TIME = re.compile(
    r"[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?", re.IGNORECASE | re.ASCII
)


def project(value: Json) -> Json:
    """A copy without book-keeping properties, at every depth."""
    if isinstance(value, dict):
        return {name: project(item) for name, item in value.items() if not _is_bookkeeping(name, item)}
    if isinstance(value, list | tuple):
        return [project(item) for item in value]
    return value


def _is_bookkeeping(name: str, value: Json) -> bool:
    if name == "sessionId":
        return True
    if name == "id" or name.endswith(("Id", "Ids")):
        return _is_uuid(value) or (isinstance(value, list) and bool(value) and all(map(_is_uuid, value)))
    if name == "timestamp" or name.endswith("At"):
        return isinstance(value, str) and _ISO_TIME.fullmatch(value) is not None
    return False


def _is_uuid(value: Json) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None
