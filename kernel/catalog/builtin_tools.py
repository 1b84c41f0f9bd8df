"""The host's data tools as a model sees them, shaped by what the package declares.

Spec: plugin-model §12. The namespace is an enum of the package's own, the value any of their record schemas,
so that a model is told the shape; that it is the right one for the namespace is judged when the tool runs.
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
    declared = list(package.manifest.contributes.data)
    return {"type": "string", "enum": declared} if declared else {"type": "string", "minLength": 1}


def _value(package: Package) -> Mapping[str, Any]:
    declared = package.manifest.contributes.data
    schemas = [dict(package.data_schemas[name]) for name in declared if name in package.data_schemas]
    # A reference inside a record's schema would point into the tool's own schema once embedded.
    if len(schemas) < len(declared) or not schemas or '"$ref"' in json.dumps(schemas):
        return {}
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
