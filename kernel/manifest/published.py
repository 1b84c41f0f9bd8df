"""What the manifests accept, for editors and for people: JSON Schemas, and tables of fields.

Both come from the models' own descriptions; nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from kernel.manifest.cases import CaseFile
from kernel.manifest.package import PluginManifest
from kernel.manifest.runtime import RuntimeManifest
from kernel.manifest.schemas import DIALECT

MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "plugin": PluginManifest,
    "runtime": RuntimeManifest,
    "cases": CaseFile,
}
"""What is published here, by the name of its files."""

_SHORT: Final = frozenset(
    {
        "ContractNeed",
        "ContractReference",
        "ContributedTool",
        "DatasetImport",
        "Hook",
        "Provided",
        "RuntimeNeed",
        "RuntimeReference",
        "ServiceDeclaration",
        "ServiceImport",
        "SettingOption",
    }
)
"""Objects that may be written as a bare word where they stand in a list."""

_MAPS: Final = ("additionalProperties", "patternProperties")

Schema = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """One row of a table."""

    name: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True)
class Table:
    """The fields of one object; `path` is empty at the top, `[]` is a list item, `.*` a map value."""

    path: str
    fields: tuple[Field, ...]


def json_schema(model: type[BaseModel], title: str) -> Schema:
    """The JSON Schema (2020-12) of what an author writes."""
    schema = model.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, **_written(schema), "title": title}


def tables(schema: Schema) -> Iterator[Table]:
    """The tables of a schema: its own fields, then those of each object below, in order."""
    definitions = schema.get("$defs", {})
    todo: list[tuple[str, Schema]] = [("", schema)]
    while todo:
        path, here = todo.pop(0)
        inner: list[tuple[str, Schema]] = []
        rows = []
        for name, field in here.get("properties", {}).items():
            required = name in here.get("required", ())
            rows.append(Field(name, _type(field, definitions), required, field.get("description", "")))
            below = f"{path}.{name}" if path else name
            inner += _objects(below, field, definitions)
        yield Table(path, tuple(rows))
        todo = [*inner, *todo]


def markdown(title: str, about: str, schema: Schema) -> str:
    """The tables as a page."""
    lines = [f"# {title}", "", about, "", "In the headings `[]` is a list item and `.*` a map value.", ""]
    for table in tables(schema):
        lines += [f"## {table.path}" if table.path else "## Top-level fields", ""]
        lines += ["| Field | Type | Required | Description |", "| --- | --- | --- | --- |"]
        for row in table.fields:
            required = "yes" if row.required else "no"
            lines.append(f"| `{row.name}` | {_cell(row.type)} | {required} | {_cell(row.description)} |")
        lines.append("")
    return "\n".join(lines)


def _written(value: Any) -> Any:
    """The schema as authors read it: without titles that only repeat names, with the short forms."""
    if isinstance(value, list):
        return [_written(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _written(item) for key, item in value.items() if key != "title" or isinstance(item, dict)}
    if "items" in found and _is_short(found["items"]):
        found["items"] = {"anyOf": [{"type": "string"}, found["items"]]}
    return found


def _is_short(items: Any) -> bool:
    if not isinstance(items, dict):
        return False
    refs = [items, *items.get("oneOf", ()), *items.get("anyOf", ())]
    return any(ref.get("$ref", "").removeprefix("#/$defs/") in _SHORT for ref in refs)


def _objects(path: str, field: Schema, definitions: Mapping[str, Schema]) -> Iterator[tuple[str, Schema]]:
    """The objects that a field holds, each with its place."""
    objects = [form for form in _forms(field) if {"$ref", "items", *_MAPS} & form.keys()]
    for number, form in enumerate(objects, 1):
        several = f" (form {number} of {len(objects)})" if len(objects) > 1 else ""
        if "$ref" in form:
            yield path + several, definitions[form["$ref"].removeprefix("#/$defs/")]
        elif isinstance(form.get("items"), dict):
            yield from _objects(f"{path}[]", form["items"], definitions)
        elif (values := _values(form)) is not None:
            yield from _objects(f"{path}.*", values, definitions)


def _forms(field: Schema) -> list[Schema]:
    """The alternatives of a field, alternatives of alternatives included."""
    inner = [form for key in ("anyOf", "oneOf") for form in field.get(key, ())]
    return [form for one in inner for form in _forms(one)] if inner else [field]


def _values(field: Schema) -> Schema | None:
    """What the values of a map are, or None for an object that is no map of one kind."""
    kinds = [field.get("additionalProperties"), *field.get("patternProperties", {}).values()]
    return next((kind for kind in kinds if isinstance(kind, dict)), None)


def _type(field: Schema, definitions: Mapping[str, Schema]) -> str:
    if "const" in field or "enum" in field:
        return " or ".join(f'"{value}"' for value in field.get("enum", [field.get("const")]))
    if "$ref" in field:
        return _type(definitions[field["$ref"].removeprefix("#/$defs/")], definitions)
    if (forms := _forms(field)) != [field]:
        names = [_type(form, definitions) for form in forms if form.get("type") != "null"]
        return " or ".join(dict.fromkeys(names))
    match field.get("type"):
        case "string":
            return "text"
        case "array":
            return f"list of {_type(field.get('items', {}), definitions)}"
        case "object" if (values := _values(field)) is not None:
            return f"map of {_type(values, definitions)}"
        case str(name):
            return name
    return "any JSON"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
