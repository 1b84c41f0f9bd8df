"""Writes the first version of a package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kernel.errors import Code, TurnwrightError
from kernel.manifest.fields import NAME_PATTERN
from kernel.manifest.versions import PRODUCT_VERSION
from link.bundled import bundled
from store import package_folders
from store.package_files import read_folder

Kind = Literal["agent", "function", "multi"]

_PLACE: Final = re.compile(rb"@(title|package|contract|version)@")


@dataclass(frozen=True)
class Written:
    """A package that was written: its folder, and the paths of its files from there."""

    folder: Path
    files: tuple[str, ...]


def write(name: str, kind: Kind, into: Path) -> Written:
    """Write a package that validates, with cases that pass.

    Args:
        into: the folder that gets the package's folder; made where there is none.

    Raises:
        TurnwrightError: `package.layout` for a name that no package can have; `package.exists` for that of a
            bundled package and for a folder that is there.
    """
    if not re.fullmatch(NAME_PATTERN[1:-1], name):
        accepted = "a letter, then at most 63 lower-case letters, digits, - and _"
        raise TurnwrightError(Code.PACKAGE_LAYOUT, f"{name!r} cannot be a package ID", accepted=accepted)
    if (bundled("plugins") / name).exists():
        message = f"{name} is the name of a bundled package"
        raise TurnwrightError(Code.PACKAGE_EXISTS, message, accepted="another name")
    values = {
        b"title": name.replace("-", " ").replace("_", " ").capitalize().encode(),
        b"package": name.encode(),
        b"contract": name.replace("_", "-").encode(),
        b"version": PRODUCT_VERSION.encode(),
    }
    template = read_folder(bundled("templates") / kind).files
    files = {path: _PLACE.sub(lambda found: values[found[1]], template[path]) for path in template}
    package_folders.put(files, into / name)
    return Written(into / name, tuple(files))
