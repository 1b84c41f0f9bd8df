"""What every place that keeps package contents must do: the suite for all drivers of `store.contents`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import update

from kernel.errors import Code, TurnwrightError
from store import package_files
from store.contents import DatabaseContents, DirectoryContents, PackageContents, contents
from store.engine import Store
from store.tables import packages

FILES = {"PLUGIN.md": b"---\n---\n", "server/__init__.py": b"def register(host): ...\n", "empty": b""}


@pytest.fixture(params=["database", "directory"])
def place(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> PackageContents:
    directory = request.param == "directory"
    return DirectoryContents(tmp_path / "contents") if directory else DatabaseContents(store)


async def alter(place: PackageContents, folder: Path, content: bytes) -> None:
    """Put other bytes where the one package is kept."""
    if isinstance(place, DatabaseContents):
        async with place.store.write() as conn:
            await conn.execute(update(packages).values(archive=content))
    else:
        [file] = (folder / "contents").iterdir()
        file.write_bytes(content)


async def refusal(work: object) -> TurnwrightError:
    with pytest.raises(TurnwrightError) as refused:
        await work  # type: ignore[misc]
    return refused.value


async def test_what_is_put_is_loaded_by_its_digest(place: PackageContents) -> None:
    digest = await place.put("p", "1.0.0", FILES)
    assert digest == package_files.digest(FILES)
    assert await place.load(digest) == FILES


async def test_the_same_files_are_put_twice_under_one_digest(place: PackageContents) -> None:
    first = await place.put("p", "1.0.0", FILES)
    assert await place.put("copy", "2.0.0", dict(reversed(FILES.items()))) == first
    assert await place.put("p", "1.0.0", {**FILES, "empty": b"x"}) != first


async def test_many_may_put_one_package_at_once(place: PackageContents) -> None:
    found = await asyncio.gather(*(place.put("p", "1.0.0", FILES) for _ in range(8)))
    assert len(set(found)) == 1
    assert await place.load(found[0]) == FILES


async def test_a_digest_that_is_not_there_is_named(place: PackageContents) -> None:
    error = await refusal(place.load("sha256:none"))
    assert (error.code, error.where) == (Code.PACKAGE_UNKNOWN, "sha256:none")


async def test_files_that_no_package_may_hold_are_refused(place: PackageContents) -> None:
    assert (await refusal(place.put("p", "1.0.0", {"../out": b""}))).code == Code.PACKAGE_PATH


@pytest.mark.parametrize("content", [package_files.pack({"PLUGIN.md": b"evil"}), b"no archive"])
async def test_content_that_was_altered_is_refused(
    place: PackageContents, tmp_path: Path, content: bytes
) -> None:
    digest = await place.put("p", "1.0.0", FILES)
    await alter(place, tmp_path, content)
    expected = Code.PACKAGE_INVALID if content == b"no archive" else Code.PACKAGE_DIGEST
    assert (await refusal(place.load(digest))).code == expected


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = DirectoryContents(tmp_path / "file" / "inner")
    assert (await refusal(place.put("p", "1.0.0", FILES))).code == Code.STORE_UNREACHABLE
    assert (await refusal(place.load("sha256:none"))).code == Code.STORE_UNREACHABLE


async def test_a_place_is_chosen_by_its_setting(store: Store, tmp_path: Path) -> None:
    assert isinstance(contents(store, "database"), DatabaseContents)
    assert isinstance(contents(store, str(tmp_path)), DirectoryContents)
