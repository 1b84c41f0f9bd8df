"""Writes what is generated from the models: JSON Schemas for editors, field tables for the docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from kernel.manifest.published import MODELS, json_schema, markdown, tables
from link.settings import Settings

__all__ = ["as_text", "pages", "schemas", "tables", "write"]

_TITLES: Final = {
    "plugin": ("Plugin manifest", "Frontmatter of `PLUGIN.md`."),
    "runtime": (
        "Runtime manifest",
        "Frontmatter of `runtimes/<id>/RUNTIME.md`, and `runtime` of a root `PLUGIN.md`.",
    ),
    "cases": ("Cases", "`tests/runtime-cases.json`; see [testing a package](../testing-packages.md)."),
    "configuration": ("Configuration", "`turnwright.toml`; see [operations](../operations.md)."),
}
_GENERATED: Final = (
    "Generated from the models by `turnwright schemas --reference docs/reference`: "
    "change their descriptions instead."
)


def schemas() -> dict[str, dict[str, Any]]:
    """Every JSON Schema, by file name."""
    return {f"{name}.schema.json": schema for name, schema in _all()}


def pages() -> dict[str, str]:
    """Every page of the reference, by file name."""
    return {
        f"{name}.md": markdown(_TITLES[name][0], f"{_TITLES[name][1]} {_GENERATED}", schema)
        for name, schema in _all()
    }


def write(folder: Path, files: dict[str, str]) -> list[Path]:
    """Write files into a folder, which is made; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written


def as_text(schema: dict[str, Any]) -> str:
    """A schema as it is written."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _all() -> Iterator[tuple[str, dict[str, Any]]]:
    models: dict[str, type[BaseModel]] = {**MODELS, "configuration": Settings}
    for name, model in models.items():
        schema = json_schema(model, _TITLES[name][0])
        if name == "configuration":  # what a process adds for itself stands in no file
            for own in ("home", "config_file"):
                schema["properties"].pop(own)
            schema["required"] = []
        yield name, schema
