"""Packages of one paragraph, for activation and planning."""

from __future__ import annotations

from kernel.manifest import Package, load_package

STORY = (
    "schedule: { stage: narrative }\n  io: { visibility: story, output: { contract: narrative-engine@2 } }"
)
EMPTY = b'{"type": "object"}'
HANDLER = {"handler.py": b"async def handler(ctx): ...\n"}


def package(name: str, runtime: str = "", root: str = "", body: str = "Go.", **files: bytes) -> Package:
    """A package.

    Args:
        runtime: YAML lines of `runtime:`, the first of them not indented.
        root: YAML lines of the root, each with its line end.
    """
    inline = f"runtime:\n  {runtime}\n" if runtime else ""
    manifest = f"---\ndescription: x\n{root}{inline}---\n{body}\n".encode()
    loaded = load_package({"PLUGIN.md": manifest, **files}, name=name)
    assert loaded.package is not None, loaded.problems
    return loaded.package


def gives(name: str, *contracts: str, default: bool = False, root: str = "") -> Package:
    """A package that provides contracts without a runtime."""
    listed = ", ".join(f"{{ contract: {one}, default: {str(default).lower()} }}" for one in contracts)
    return package(name, root=f"provides: [{listed}]\n{root}")


def needs(name: str, *contracts: str, root: str = "") -> Package:
    """A package that requires contracts."""
    return package(name, root=f"requires: [{', '.join(contracts)}]\n{root}")
