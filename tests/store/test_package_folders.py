"""Package folders: put in whole, taken out whole, unseen in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.errors import Code, TurnwrightError
from store.package_files import read_folder
from store.package_folders import packages_in, put, take_out

FILES = {"PLUGIN.md": b"one", "schemas/a.json": b"{}"}


def held(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_a_package_is_put_in_and_taken_out(tmp_path: Path) -> None:
    root = tmp_path / "packages"
    put(FILES, root / "omens")
    assert read_folder(root / "omens").files == FILES
    assert packages_in(root) == [root / "omens"]
    take_out(root / "omens")
    assert held(root) == []


def test_what_stands_there_is_replaced_when_that_is_asked_for(tmp_path: Path) -> None:
    put(FILES, tmp_path / "omens")
    with pytest.raises(TurnwrightError) as refusal:
        put({"PLUGIN.md": b"two"}, tmp_path / "omens")
    assert refusal.value.code == Code.PACKAGE_EXISTS
    assert read_folder(tmp_path / "omens").files == FILES
    put({"PLUGIN.md": b"two"}, tmp_path / "omens", replace=True)
    assert read_folder(tmp_path / "omens").files == {"PLUGIN.md": b"two"}
    assert held(tmp_path) == ["omens"]


def test_a_link_is_replaced_and_removed_without_what_it_leads_to(tmp_path: Path) -> None:
    put(FILES, tmp_path / "mine")
    root = tmp_path / "packages"
    root.mkdir()
    for again in (False, True):
        (root / "omens").symlink_to(tmp_path / "mine")
        if again:
            put({"PLUGIN.md": b"two"}, root / "omens", replace=True)
        take_out(root / "omens")
        assert held(root) == []
    assert read_folder(tmp_path / "mine").files == FILES


def test_what_cannot_be_written_leaves_what_stood_there(tmp_path: Path) -> None:
    put(FILES, tmp_path / "omens")
    with pytest.raises(TurnwrightError) as refusal:
        put({"a": b"", "a/b": b""}, tmp_path / "omens", replace=True)
    assert refusal.value.code == Code.PACKAGE_PATH
    (tmp_path / "file").touch()
    with pytest.raises(TurnwrightError, match="cannot be written"):
        put(FILES, tmp_path / "file" / "omens")
    with pytest.raises(TurnwrightError, match="cannot be removed"):
        take_out(tmp_path / "nothing")
    assert held(tmp_path) == ["file", "omens"]
    assert read_folder(tmp_path / "omens").files == FILES


def test_what_is_being_written_is_no_package(tmp_path: Path) -> None:
    put(FILES, tmp_path / ".draft-1")
    assert packages_in(tmp_path) == []
    assert packages_in(tmp_path / "none") == []
