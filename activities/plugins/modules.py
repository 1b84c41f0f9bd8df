"""Gives a folder a place in the import system, under a name of its own.

Only source is read and nothing is written: a `__pycache__` in the folder would change its digest, and one
that came with the package could hold other code than its source.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

PREFIX: Final = "_turnwright_package_"


class _SourceOnly(SourceFileLoader):
    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError("no bytecode cache")


class _Finder:
    """Finds the modules of installed folders; every other name is left to Python."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(PREFIX):
            return None
        for entry in path or ():
            if (spec := FileFinder(entry, (_SourceOnly, [".py"])).find_spec(name)) is not None:
                return spec
        return None


_finder = _Finder()


def install(root: str, folder: Path) -> None:
    """Make `root` a package whose modules are the files of `folder`."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    spec = ModuleSpec(root, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[root] = module_from_spec(spec)


def remove(root: str) -> None:
    """Forget `root` and its modules; who holds one of their functions keeps it."""
    for name in [name for name in sys.modules if name == root or name.startswith(root + ".")]:
        del sys.modules[name]
