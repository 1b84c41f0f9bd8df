"""Small packages as maps of paths to bytes."""

from __future__ import annotations

import json
from typing import Any

from kernel.manifest import Loaded, Package, RuntimeManifest, load_package

AUTO = {"stage": "post-turn"}
MANUAL = {"trigger": {"type": "manual"}}
HANDLER = b"async def handler(ctx): ...\n"
GUARD = b"async def guard(ctx): ...\n"
REGISTER = b"def register(host): ...\n"


def manifest(data: Any, body: str = "Do it.") -> bytes:
    """A manifest file; JSON is YAML."""
    return f"---\n{json.dumps(data)}\n---\n{body}\n".encode()


def text(yaml: str, body: str = "Do it.") -> bytes:
    """A manifest file of literal YAML."""
    return f"---\n{yaml.strip()}\n---\n{body}\n".encode()


def files(plugin: Any = None, runtimes: dict[str, Any] | None = None, **more: bytes) -> dict[str, bytes]:
    """A package; further files are given by path."""
    found = {"PLUGIN.md": manifest({} if plugin is None else plugin)}
    for folder, data in (runtimes or {}).items():
        found[f"runtimes/{folder}/RUNTIME.md"] = manifest(data)
    return found | more


def load(content: dict[str, bytes], name: str = "pkg", **options: Any) -> Loaded:
    return load_package(content, name=name, **options)


def package(content: dict[str, bytes], name: str = "pkg", **options: Any) -> Package:
    """A package that must load."""
    loaded = load(content, name, **options)
    assert loaded.package is not None, [problem.render() for problem in loaded.errors]
    return loaded.package


def errors(content: dict[str, bytes], name: str = "pkg", **options: Any) -> list[tuple[str, str]]:
    """Code and field of every error."""
    return [(problem.code.value, problem.path) for problem in load(content, name, **options).errors]


def runtime(**fields: Any) -> RuntimeManifest:
    return RuntimeManifest.model_validate({"schedule": AUTO, **fields})
