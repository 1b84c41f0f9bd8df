"""The host's data tools as a model sees them, shaped by what the package declares.

Spec: plugin-model §12. The namespace is an enum of the package's own; with one namespace the value takes the
record's schema, so that a model is told, and held to, the shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kernel.agent.messages import ToolSpec
from kernel.manifest import Package

BUILTIN_DATA_TOOLS = (
    "plugin-data-set",
    "plugin-data-set-batch",
    "plugin-data-get",
    "plugin-data-list",
    "plugin-data-delete",
)

_DESCRIPTIONS = {
    "plugin-data-set": "Store one record of this package's data. It is saved when the turn is.",
    "plugin-data-set-batch": "Store several records of this package's data as one change.",
    "plugin-data-get": "Read one record of this package's data, own changes of this run included.",
    "plugin-data-list": "List records of this package's data, own changes of this run included.",
    "plugin-data-delete": "Delete one record of this package's data.",
}


def builtin_spec(name: str, package: Package) -> ToolSpec:
    """The tool of this name for this package."""
    return ToolSpec(name=name, description=_DESCRIPTIONS[name], parameters=_parameters(name, package))


def _parameters(name: str, package: Package) -> dict[str, Any]:
    namespace, key = _namespace(package), {"type": "string", "minLength": 1, "maxLength": 200}
    record = {"namespace": namespace, "key": key, "value": _value(package)}
    match name:
        case "plugin-data-set":
            return _object(record)
        case "plugin-data-set-batch":
            items = {"type": "array", "items": _object(record), "minItems": 1, "maxItems": 100}
            return _object({"items": items})
        case "plugin-data-list":
            return _object({"namespace": namespace, "prefix": {"type": "string"}}, optional=("prefix",))
        case _:
            return _object({"namespace": namespace, "key": key})


def _namespace(package: Package) -> dict[str, Any]:
    declared = sorted(package.manifest.contributes.data)
    return {"type": "string", "enum": declared} if declared else {"type": "string", "minLength": 1}


def _value(package: Package) -> Mapping[str, Any]:
    schemas = list(package.data_schemas.values())
    alone = len(package.manifest.contributes.data) == 1 and len(schemas) == 1
    # A reference inside the record's schema would point into the tool's own schema once embedded.
    return dict(schemas[0]) if alone and '"$ref"' not in json.dumps(schemas[0]) else {}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
