"""What a run sees of its own staged writes: the newest one per record wins over what is committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kernel.wire.base import Json

RecordKey = tuple[str, str]
"""(namespace, key) of one record of the package's own data."""


class Deleted:
    """Marks a record that the run deleted."""


DELETED = Deleted()


def own_writes(proposals: Iterable[Mapping[str, Any]]) -> dict[RecordKey, Json | Deleted]:
    """The state of every record that staged proposals touch, in staging order."""
    writes: dict[RecordKey, Json | Deleted] = {}
    for proposal in proposals:
        match proposal["type"]:
            case "plugin.data":
                writes[proposal["namespace"], proposal["key"]] = proposal["value"]
            case "plugin.data.batch":
                writes |= {(item["namespace"], item["key"]): item["value"] for item in proposal["items"]}
            case "plugin.data.delete":
                writes[proposal["namespace"], proposal["key"]] = DELETED
    return writes
