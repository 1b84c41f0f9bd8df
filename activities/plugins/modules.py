"""Gives a folder a place in the import system, under a name of its own.

Only source is read and nothing is written: a `__pycache__` in the folder would change its digest, and one
that came with the package could hold other code than its source.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

PREFIX: Final = "_turnwright_package_"


class _SourceOnly(SourceFileLoader):
    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError("no bytecode cache")


class _Finder:
    """Finds installed folders and their modules; every other name is left to Python."""

    def __init__(self) -> None:
        self.folders: dict[str, Path] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(PREFIX):
            return None
        if (folder := self.folders.get(name)) is not None:
            package = ModuleSpec(name, None, is_package=True)
            package.submodule_search_locations = [str(folder)]
            return package
        for entry in path or ():
            if (spec := FileFinder(entry, (_SourceOnly, [".py"])).find_spec(name)) is not None:
                return spec
        return None


_finder = _Finder()


def install(root: str, folder: Path) -> None:
    """Make `root` a package whose modules are the files of `folder`."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.folders[root] = folder


def remove(root: str) -> None:
    """Forget the modules of `root`; who holds one of their functions keeps it, and may still import."""
    for name in list(sys.modules):
        if name == root or name.startswith(root + "."):
            sys.modules.pop(name, None)
