from __future__ import annotations

import io
import os
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from kernel.errors import Code, TurnwrightError
from store import package_files, packages
from store.engine import Store
from store.package_files import digest, materialise, pack, read_folder, unpack
from store.tables import packages as table

FILES = {"PLUGIN.md": b"---\nid: p\n---\n", "runtimes/a/RUNTIME.md": b"", "data/\xe4.json": b"{}"}


async def test_a_package_is_stored_once_and_comes_back(store: Store) -> None:
    async with store.write() as conn:
        key = await packages.put(conn, "p", "1.0.0", FILES, now=1.0)
        assert await packages.put(conn, "p", "1.0.0", dict(reversed(FILES.items()))) == key
        assert await packages.load(conn, key) == FILES
        known = await packages.get(conn, key)
        assert await packages.list_all(conn) == [known]
        assert await packages.list_all(conn, package_id="other") == []
    assert known is not None
    assert (known.package_id, known.version, known.created_at) == ("p", "1.0.0", 1.0)
    assert known.size == sum(map(len, FILES.values()))


async def test_an_unknown_digest_is_named(store: Store) -> None:
    async with store.read() as conn:
        with pytest.raises(TurnwrightError, match="sha256:none") as refusal:
            await packages.load(conn, "sha256:none")
    assert refusal.value.code == Code.PACKAGE_UNKNOWN


async def test_an_altered_package_is_refused(store: Store) -> None:
    async with store.write() as conn:
        key = await packages.put(conn, "p", "1.0.0", FILES)
        other = pack({**FILES, "PLUGIN.md": b"---\nid: q\n---\n"})
        await conn.execute(update(table).values(archive=other))
        with pytest.raises(TurnwrightError) as refusal:
            await packages.load(conn, key)
        await conn.execute(update(table).values(archive=other[:-30]))
        with pytest.raises(TurnwrightError) as broken:
            await packages.load(conn, key)
    assert refusal.value.code == Code.PACKAGE_DIGEST
    assert broken.value.code == Code.PACKAGE_INVALID


def test_a_digest_depends_on_every_path_and_byte() -> None:
    sets = [{"a": b"bc"}, {"ab": b"c"}, {"a": b"b", "c": b""}, {"a": b"", "bc": b""}, {}]
    assert len({digest(files) for files in sets}) == len(sets)
    assert digest(FILES) == digest(dict(reversed(FILES.items())))


def test_equal_files_give_equal_archives() -> None:
    assert pack(FILES) == pack(dict(reversed(FILES.items())))
    assert unpack(pack(FILES)) == FILES


def zipped(*entries: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "name",
    ["../out", "/etc/passwd", "a/../../b", "a//b", "./a", "a\\b", "a\nb", "a//", "x" * 300, "d/" * 17 + "f"],
)
def test_an_archive_with_a_path_that_leads_out_is_refused(name: str) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        unpack(zipped((name, b"")))
    assert refusal.value.code == Code.PACKAGE_PATH


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("entries", [[("a", b"1"), ("a", b"2")], [("a", b""), ("a/b", b"")]])
def test_an_archive_with_two_files_in_one_place_is_refused(entries: list[tuple[str, bytes]]) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        unpack(zipped(*entries))
    assert refusal.value.code == Code.PACKAGE_PATH


def test_an_expansion_bomb_is_refused() -> None:
    bomb = zipped(("a", bytes(package_files.MAX_FILE_BYTES + 1)))
    assert len(bomb) < 100_000
    with pytest.raises(TurnwrightError) as refusal:
        unpack(bomb)
    assert refusal.value.code == Code.PACKAGE_SIZE
    many = zipped(*((f"f{number}", bytes(package_files.MAX_FILE_BYTES)) for number in range(5)))
    with pytest.raises(TurnwrightError) as second:
        unpack(many)
    assert second.value.code == Code.PACKAGE_SIZE


def test_folders_of_an_archive_are_no_files() -> None:
    assert unpack(zipped(("a/", b""), ("a/b", b"1"))) == {"a/b": b"1"}


def test_a_nul_in_a_name_does_not_cut_it() -> None:
    # zipfile cuts names at a NUL when it writes, too: the byte is put in afterwards
    archive = zipped(("a.py?.md", b"1")).replace(b"a.py?.md", b"a.py\0.md")
    with pytest.raises(TurnwrightError, match="control characters") as refusal:
        unpack(archive)
    assert refusal.value.code == Code.PACKAGE_PATH


@pytest.mark.parametrize(("kind", "why"), [(stat.S_IFLNK, "a link"), (stat.S_IFIFO, "no regular file")])
def test_an_archive_with_anything_but_files_is_refused(kind: int, why: str) -> None:
    entry = zipfile.ZipInfo("a")
    entry.external_attr = (kind | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(entry, "../../outside")
    with pytest.raises(TurnwrightError, match=why) as refusal:
        unpack(buffer.getvalue())
    assert refusal.value.code == Code.PACKAGE_PATH


def test_an_archive_that_is_packed_in_another_way_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"1")
    with pytest.raises(TurnwrightError, match="stored or deflated") as refusal:
        unpack(buffer.getvalue())
    assert refusal.value.code == Code.PACKAGE_INVALID


def test_an_archive_of_many_names_is_refused_before_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = zipped(*((f"f{number}/", b"") for number in range(2 * package_files.MAX_FILES + 1)))
    monkeypatch.delattr(zipfile, "ZipFile")
    with pytest.raises(TurnwrightError) as refusal:
        unpack(archive)
    assert refusal.value.code == Code.PACKAGE_SIZE


@given(st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=6)), min_size=1, max_size=5))
def test_a_damaged_archive_is_refused_or_read(damages: list[tuple[int, bytes]]) -> None:
    archive = pack(FILES)
    for at, damage in damages:
        start = at % len(archive)
        archive = archive[:start] + damage + archive[start + len(damage) :]
    with suppress(TurnwrightError):
        unpack(archive)


def test_too_many_files_are_refused() -> None:
    with pytest.raises(TurnwrightError) as refusal:
        pack({f"f{number}": b"" for number in range(package_files.MAX_FILES + 1)})
    assert refusal.value.code == Code.PACKAGE_SIZE


@pytest.mark.parametrize("archive", [b"", b"nonsense", pack(FILES)[:-10]])
def test_what_is_no_archive_is_refused(archive: bytes) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        unpack(archive)
    assert refusal.value.code == Code.PACKAGE_INVALID


def lay(root: Path) -> Path:
    folder = root / "package"
    for name, content in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def test_a_folder_is_read_without_what_tools_leave_behind(tmp_path: Path) -> None:
    folder = lay(tmp_path)
    for name in (".git/config", "__pycache__/x.pyc", "data/.DS_Store"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("left behind")
    found = read_folder(folder)
    assert found.files == FILES
    assert list(found.files) == sorted(FILES)
    assert found.links == {}


def test_links_are_followed_inside_and_never_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = lay(tmp_path)
    targets = {"in.md": "PLUGIN.md", "out.md": "../secret", "absolute": str(tmp_path / "secret")}
    targets |= {"folder": "data", "up": "..", "circle": "circle", "dangling": "nowhere"}
    for name, target in targets.items():
        (folder / name).symlink_to(target)
    found = read_folder(folder)
    assert found.links == targets
    assert found.files == {**FILES, "in.md": FILES["PLUGIN.md"]}


def test_a_pipe_is_refused_without_being_opened(tmp_path: Path) -> None:
    folder = lay(tmp_path)
    os.mkfifo(folder / "pipe")
    with pytest.raises(TurnwrightError, match="pipe") as refusal:
        read_folder(folder)
    assert refusal.value.code == Code.PACKAGE_PATH


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    folder = lay(tmp_path)
    (folder / os.fsdecode(b"\xff")).write_bytes(b"")
    with pytest.raises(TurnwrightError, match="UTF-8"):
        read_folder(folder)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    folder = lay(tmp_path)
    with (folder / "large").open("wb") as file:
        file.truncate(package_files.MAX_FILE_BYTES + 1)
    with pytest.raises(TurnwrightError, match="large") as refusal:
        read_folder(folder)
    assert refusal.value.code == Code.PACKAGE_SIZE


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(TurnwrightError, match="absent") as refusal:
        read_folder(tmp_path / "absent")
    assert refusal.value.code == Code.PACKAGE_LAYOUT


def test_a_working_copy_is_read_only_and_made_once(tmp_path: Path) -> None:
    folder = materialise(FILES, digest(FILES), tmp_path / "copies")
    before = (folder / "PLUGIN.md").stat()
    assert materialise(FILES, digest(FILES), tmp_path / "copies") == folder
    assert (folder / "PLUGIN.md").stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o222 == 0
    assert folder.stat().st_mode & 0o222 == 0
    assert read_folder(folder).files == FILES


def test_files_of_another_digest_are_not_laid_out(tmp_path: Path) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        materialise(FILES, digest({}), tmp_path / "copies")
    assert refusal.value.code == Code.PACKAGE_DIGEST
    assert not (tmp_path / "copies").exists()


@pytest.mark.parametrize("tampering", ["changed", "added", "removed", "linked"])
def test_an_altered_working_copy_is_made_again(tmp_path: Path, tampering: str) -> None:
    folder = materialise(FILES, digest(FILES), tmp_path / "copies")
    folder.chmod(0o755)
    file = folder / "PLUGIN.md"
    if tampering == "added":
        (folder / "extra.py").write_text("evil")
    else:
        file.chmod(0o644)
        content = file.read_bytes()
        file.unlink()
        if tampering == "changed":
            file.write_bytes(b"evil")
        if tampering == "linked":
            (tmp_path / "elsewhere").write_bytes(content)
            file.symlink_to(tmp_path / "elsewhere")
    again = materialise(FILES, digest(FILES), tmp_path / "copies")
    assert again == folder
    assert read_folder(again) == package_files.Folder(dict(sorted(FILES.items())), {})
    assert [entry.name for entry in (tmp_path / "copies").iterdir()] == [folder.name]


def test_a_link_in_place_of_the_working_copy_is_replaced(tmp_path: Path) -> None:
    elsewhere = lay(tmp_path)
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / digest(FILES).replace(":", "-")).symlink_to(elsewhere)
    folder = materialise(FILES, digest(FILES), copies)
    assert not folder.is_symlink()
    assert (elsewhere / "PLUGIN.md").stat().st_mode & 0o200


def test_many_may_lay_out_one_package_at_once(tmp_path: Path) -> None:
    key = digest(FILES)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: materialise(FILES, key, tmp_path / "copies"), range(32)))
    assert len(set(made)) == 1
    assert [entry.name for entry in (tmp_path / "copies").iterdir()] == [made[0].name]
