"""Folders that packages stand in: which there are, one put in whole, one taken out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from kernel.errors import Code, TurnwrightError
from store import package_files


def packages_in(root: Path) -> list[Path]:
    """The package folders of a folder that packages are looked for in, or that is one itself.

    A folder whose name begins with a dot is none: what is being written has such a name.
    """
    if (root / "PLUGIN.md").exists():
        return [root]
    inner = sorted(root.iterdir()) if root.is_dir() else []
    return [one for one in inner if not one.name.startswith(".") and (one / "PLUGIN.md").exists()]


def put(files: Mapping[str, bytes], folder: Path, *, replace: bool = False) -> None:
    """Write a package folder: it appears whole or not at all.

    Args:
        replace: put it in the place of one that stands there. That one comes back when the new one cannot.

    Raises:
        TurnwrightError: `package.exists`; `package.path` where it cannot be written, or for what no package
            may hold; `package.size`.
    """
    package_files.check(files)
    if os.path.lexists(folder) and not replace:
        raise _exists(folder)
    draft = _beside(folder, "draft")
    try:
        _write(files, draft)
        _move(draft, folder, replace=replace)
    except OSError as error:
        message = f"the package cannot be written: {error.strerror}"
        raise TurnwrightError(Code.PACKAGE_PATH, message, where=str(error.filename or folder)) from None
    finally:
        _discard(draft)


def take_out(folder: Path) -> None:
    """Remove a package folder: it is gone whole, or not at all.

    Raises:
        TurnwrightError: `package.path` where it cannot be removed.
    """
    former = _beside(folder, "former")
    try:
        folder.rename(former)
    except OSError as error:
        message = f"the package cannot be removed: {error.strerror}"
        raise TurnwrightError(Code.PACKAGE_PATH, message, where=str(folder)) from None
    _discard(former)


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{what}-{uuid4().hex}")


def _write(files: Mapping[str, bytes], draft: Path) -> None:
    draft.mkdir(parents=True)
    for name, content in files.items():
        file = draft / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _move(draft: Path, folder: Path, *, replace: bool) -> None:
    former = _beside(folder, "former")
    stood = replace and os.path.lexists(folder)
    if stood:
        folder.rename(former)
    try:
        draft.rename(folder)
    except OSError:
        if not os.path.lexists(folder):
            if stood:
                former.rename(folder)
            raise
        raise _exists(folder) from None  # another process was there first
    finally:
        _discard(former)


def _discard(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _exists(folder: Path) -> TurnwrightError:
    return TurnwrightError(
        Code.PACKAGE_EXISTS, f"there is a {folder.name!r} already", where=str(folder), accepted="another name"
    )
