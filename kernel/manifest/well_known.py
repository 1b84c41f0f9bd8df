"""Contracts whose shape the host ships. A package may restate a schema, not change it. Decision 21."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kernel.manifest.schemas import Schema

_TEXT: Final[Schema] = {"type": "string"}
_NAME: Final[Schema] = {"type": "string", "minLength": 1}


def _closed(properties: Schema, *optional: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _choice(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


_SEGMENTS: Final = _list(
    _closed({"kind": _choice("narration", "dialogue", "action"), "text": _TEXT, "speaker": _NAME}, "speaker")
)
_PERSON: Final = {"characterId": _NAME, "name": _NAME}

WELL_KNOWN: Final[Mapping[str, Schema]] = MappingProxyType(
    {
        "narrative-engine@2": _closed({"segments": _SEGMENTS, "yield": _choice("user", "continue")}, "yield"),
        "character-actor@1": _closed({"segments": _SEGMENTS, "intent": _TEXT}, "intent"),
        "turn-policy@1": _closed(
            {
                "actors": _list(_closed({"characterId": _NAME, "instruction": _TEXT}, "instruction")),
                "order": _choice("parallel", "sequential"),
                "narrator": _choice("before", "after", "none"),
                "yieldHint": _choice("user", "continue"),
            }
        ),
        "scene-cast@1": _closed(
            {
                "cast": _list(
                    _closed({**_PERSON, "present": {"type": "boolean"}, "seat": _TEXT}, "seat"),
                )
            }
        ),
        "turn-digest@1": _closed(
            {
                "turnId": _NAME,
                "logicalTurn": {"type": "integer", "minimum": 0},
                "lastPlayerInput": {},
                "story": {
                    "anyOf": [_closed({"runtimeId": _NAME, "text": _TEXT}), {"type": "null"}],
                },
                "runtimeResults": _list(
                    _closed({"runtimeId": _NAME, "status": _NAME, "reason": _TEXT}, "reason")
                ),
            }
        ),
        "operations@1": _closed(
            {
                "operations": _list(
                    _closed(
                        {
                            "runtimeId": _NAME,
                            "ordinal": {"type": "integer", "minimum": 0},
                            "type": _NAME,
                            "target": {},
                            "value": {},
                        }
                    )
                )
            }
        ),
    }
)
"""Contract ID to the JSON Schema of its value; for a service contract, of its answer."""

TURN_POLICY_INPUT: Final[Schema] = _closed(
    {"actions": _list({}), "present": _list(_closed(_PERSON)), "recentSegments": _SEGMENTS}
)
"""What `turn-policy@1` is asked with."""

_NOTES: Final = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "examples", "default", "deprecated"}
)


def restates(schema: Schema, contract: str) -> bool:
    """Whether a package's schema says the same as the host's, notes and order aside."""
    return same_shape(schema, WELL_KNOWN[contract])


def same_shape(one: Schema, other: Schema) -> bool:
    """Whether two schemas say the same, notes and order aside."""
    return bool(_bare(one) == _bare(other))


def _bare(schema: Any, *, names: bool = False) -> Any:
    """The schema without its notes; under `properties` a key is a name and stays."""
    if isinstance(schema, dict):
        return {
            key: _bare(value, names=key == "properties" and not names)
            for key, value in schema.items()
            if names or key not in _NOTES
        }
    if isinstance(schema, list):
        bare = [_bare(item) for item in schema]
        return sorted(bare) if all(isinstance(item, str) for item in bare) else bare
    return schema
