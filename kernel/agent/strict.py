"""Which schemas a provider can hold a model to. Catalogue H7.

Strict mode takes a part of JSON Schema and refuses the whole call for a schema outside it: the root is an
object, every property is required and no other allowed, and a schema with `$ref` holds nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_KEYWORDS: Final = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
_MAX_LEVELS: Final = 10
_MAX_PROPERTIES: Final = 5_000
ROOT_CHOICES: Final = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref")
"""What providers refuse at the root of a tool's arguments, in strict mode or not."""


def strict_fault(schema: Mapping[str, Any]) -> str:
    """Why a schema cannot be sent in strict mode, with the place; empty when it can."""
    if (choice := next((name for name in ROOT_CHOICES if name in schema), None)) is not None:
        return f"{choice} at #"
    if schema.get("type") != "object":
        return "no object at #"
    count = 0
    for at, level, here in _places(schema, "#", 0):
        if fault := _fault(here, level):
            return f"{fault} at {at}"
        count += len(here.get("properties", ()))
    return f"more than {_MAX_PROPERTIES} properties" if count > _MAX_PROPERTIES else ""


def _fault(here: Any, level: int) -> str:
    if not isinstance(here, Mapping):
        return f"the schema {str(here).lower()}"
    if level > _MAX_LEVELS:
        return f"more than {_MAX_LEVELS} levels"
    if unknown := sorted(here.keys() - _KEYWORDS):
        return str(unknown[0])
    if "$ref" in here and len(here) > 1:
        return "$ref beside other keywords"
    reference = str(here.get("$ref", "#"))
    if reference != "#" and not reference.startswith(("#/$defs/", "#/properties/")):
        return f"$ref {reference}"
    if "properties" in here or here.get("type") == "object":
        if here.get("additionalProperties") is not False:
            return "no additionalProperties: false"
        if optional := sorted(here.get("properties", {}).keys() - set(here.get("required", ()))):
            return f"the optional property {optional[0]}"
    return ""


def _places(here: Any, at: str, level: int) -> Iterator[tuple[str, int, Any]]:
    yield at, level, here
    if not isinstance(here, Mapping):
        return
    for name in ("properties", "$defs"):
        for key, inner in here.get(name, {}).items():
            yield from _places(inner, f"{at}/{name}/{key}", level + (name == "properties"))
    if "items" in here:
        yield from _places(here["items"], f"{at}/items", level + 1)
    for index, inner in enumerate(here.get("anyOf", ())):
        yield from _places(inner, f"{at}/anyOf/{index}", level)
