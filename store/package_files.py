"""Package content outside the database: folders read with suspicion, digests, archives, working copies.

What comes in may be hostile: a folder from anywhere, an archive from a database that others can write.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from uuid import uuid4

from kernel.errors import Code, TurnwrightError

MAX_FILES = 2_000
MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_TOTAL_BYTES = 32 * 1024 * 1024
MAX_PATH_BYTES = 240
MAX_DEPTH = 16
MAX_ARCHIVE_BYTES = MAX_TOTAL_BYTES + 1024 * 1024

_SKIPPED = {"__pycache__", ".git", ".DS_Store", "__MACOSX"}
_DIRECTORY_ENTRY = b"PK\x01\x02"
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)
_ARCHIVE_TIME = (1980, 1, 1, 0, 0, 0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Folder:
    """A package folder as read.

    Attributes:
        files: content by path with `/`, sorted; a link to a file inside the folder counts as that file.
        links: target as written, by path of each symbolic link. A link without an entry in `files` leaves
            the folder, leads to no regular file, or dangles.
    """

    files: dict[str, bytes]
    links: dict[str, str]


def read_folder(path: Path) -> Folder:
    """Read a package folder without following anything out of it.

    Raises:
        TurnwrightError: `package.path` for a name or kind of file that no package may hold,
            `package.size` past the limits, `package.layout` when there is no such folder.
    """
    if not path.is_dir():
        raise TurnwrightError(Code.PACKAGE_LAYOUT, "there is no such folder", where=str(path))
    root = path.resolve()
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    total = 0
    for name, entry in _entries(str(root), "", 0):
        target: str | Path = entry.path
        if entry.is_symlink():
            links[name] = os.readlink(entry.path)
            inside = _inside(root, entry)
            if inside is None:
                continue
            target = inside
        files[name] = _read(target, name)
        total += len(files[name])
        _check_size(len(files), total)
    return Folder(dict(sorted(files.items())), dict(sorted(links.items())))


def digest(files: Mapping[str, bytes]) -> str:
    """`sha256:…` over every path and content in code-point order of the paths."""
    hashing = hashlib.sha256()
    for name in sorted(files):
        path = name.encode()
        # With the lengths in, no two sets of files give the same bytes.
        hashing.update(len(path).to_bytes(8, "big") + path)
        hashing.update(len(files[name]).to_bytes(8, "big") + files[name])
    return f"sha256:{hashing.hexdigest()}"


def pack(files: Mapping[str, bytes]) -> bytes:
    """A zip archive without times, owners or modes: equal files give equal bytes.

    Raises:
        TurnwrightError: `package.path` or `package.size`.
    """
    check(files)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _ARCHIVE_TIME)
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | 0o444) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def unpack(archive: bytes) -> dict[str, bytes]:
    """The files of an archive, none of them trusted.

    Raises:
        TurnwrightError: `package.path`, `package.size`, or `package.invalid` when it is no such archive.
    """
    if len(archive) > MAX_ARCHIVE_BYTES:
        raise _too_large(f"an archive of more than {MAX_ARCHIVE_BYTES} bytes", "")
    # Opening an archive makes an object for each entry; a small one can name a million.
    if archive.count(_DIRECTORY_ENTRY) > 2 * MAX_FILES:
        raise _too_large(f"more than {MAX_FILES} files", "")
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return _extract(opened)
    except _BROKEN as error:
        raise TurnwrightError(Code.PACKAGE_INVALID, f"the package archive cannot be read: {error}") from error


def left_behind(name: str) -> bool:
    """Whether a path of an archive is what tools leave in folders: no part of any package."""
    return not _SKIPPED.isdisjoint(name.split("/"))


def check(files: Mapping[str, bytes]) -> None:
    """Refuse paths and sizes that no package may have."""
    for name, content in files.items():
        _check_path(name)
        if len(content) > MAX_FILE_BYTES:
            raise _too_large(f"a file of more than {MAX_FILE_BYTES} bytes", name)
    _check_size(len(files), sum(map(len, files.values())))
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    for name in sorted(folders & set(files)):
        raise _bad_path(name, "it is a file and a folder at once")


def materialise(files: Mapping[str, bytes], expected: str, root: Path) -> Path:
    """A read-only folder with exactly these files, under `root`, named by the digest.

    The folder appears whole or not at all. One that stands is checked byte by byte, and replaced when it
    differs: it is a copy, and the store has the original. Two processes may do this at once.

    Raises:
        TurnwrightError: `package.digest-mismatch` when the files are not those of the digest.
    """
    check(files)
    if digest(files) != expected:
        raise mismatch(expected, "the files are others than the digest names")
    root.mkdir(parents=True, exist_ok=True)
    final = root / expected.replace(":", "-")
    for _ in range(5):
        if _holds(final, expected):
            return final
        if os.path.lexists(final):
            _log.warning("the working copy %s was altered and is made again", final)
            _set_aside(final)
        _place(files, final)
    raise mismatch(expected, f"the working copy {final} does not stay as it was written")


def mismatch(expected: str, message: str) -> TurnwrightError:
    """The refusal of content that is not what its digest names."""
    return TurnwrightError(Code.PACKAGE_DIGEST, message, where=expected, accepted="content of that digest")


def _entries(folder: str, inner: str, depth: int) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file and link below a folder; folders are walked, links to folders are not.

    Paths are plain text here: hundreds of folders are read each time a session is made, and `pathlib` took
    half of it.
    """
    if depth > MAX_DEPTH:
        raise _bad_path(inner, f"folders nest deeper than {MAX_DEPTH}")
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name in _SKIPPED:
            continue
        name = f"{inner}/{entry.name}" if inner else entry.name
        _check_path(name)
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path, name, depth + 1)
        elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
            yield name, entry
        else:
            raise _bad_path(name, "it is a device, a pipe or a socket")


def _inside(root: Path, entry: os.DirEntry[str]) -> Path | None:
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):  # dangling, or a circle
        return None
    return target if target.is_relative_to(root) and target.is_file() else None


def _read(path: str | Path, name: str) -> bytes:
    # What was a regular file a moment ago may be a link or a pipe now.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _bad_path(name, "it is no regular file")
        content = _content(descriptor, found.st_size)
    finally:
        os.close(descriptor)
    if len(content) > MAX_FILE_BYTES:
        raise _too_large(f"a file of more than {MAX_FILE_BYTES} bytes", name)
    return content


def _content(descriptor: int, expected: int) -> bytes:
    """All of a file up to one byte past the limit; its size is a guess, for it may grow meanwhile."""
    pieces, left = [], MAX_FILE_BYTES + 1
    while left and (piece := os.read(descriptor, min(left, max(expected, 4096) + 1))):
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _extract(archive: zipfile.ZipFile) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    total = 0
    for entry in archive.infolist():
        _check_entry(entry)
        if entry.is_dir():
            continue
        if entry.filename in files:
            raise _bad_path(entry.filename, "it stands in the archive twice")
        # Sizes in the archive may lie: what counts is what comes out.
        with archive.open(entry) as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
        files[entry.filename] = content
        total += len(content)
        _check_size(len(files), total)
    check(files)
    return files


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename  # `filename` ends at a NUL
    _check_path(name.removesuffix("/"))
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _bad_path(name, "it is a link" if kind == stat.S_IFLNK else "it is no regular file")
    if entry.compress_type not in _COMPRESSIONS:
        accepted = "an archive whose files are stored or deflated"
        raise TurnwrightError(
            Code.PACKAGE_INVALID, "it is packed in another way", where=name, accepted=accepted
        )


def _check_path(name: str) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise _bad_path(ascii(name), "it is not UTF-8") from None
    if size > MAX_PATH_BYTES:
        raise _bad_path(name[:80] + "…", f"it is longer than {MAX_PATH_BYTES} bytes")
    parts = name.split("/")
    if "" in parts or "." in parts or ".." in parts:
        raise _bad_path(name, "it does not stay inside the package")
    if len(parts) > MAX_DEPTH + 1:
        raise _bad_path(name, f"folders nest deeper than {MAX_DEPTH}")
    if not name.isprintable() or "\\" in name:
        raise _bad_path(ascii(name), "it has control characters or backslashes")


def _check_size(count: int, total: int) -> None:
    if count > MAX_FILES:
        raise _too_large(f"more than {MAX_FILES} files", "")
    if total > MAX_TOTAL_BYTES:
        raise _too_large(f"more than {MAX_TOTAL_BYTES} bytes", "")


def _bad_path(name: str, reason: str) -> TurnwrightError:
    accepted = "regular files with relative UTF-8 paths"
    return TurnwrightError(
        Code.PACKAGE_PATH, f"a package may not hold this: {reason}", where=name, accepted=accepted
    )


def _too_large(what: str, name: str) -> TurnwrightError:
    return TurnwrightError(Code.PACKAGE_SIZE, f"the package has {what}", where=name)


def _holds(folder: Path, expected: str) -> bool:
    """Whether a folder has exactly the files of a digest."""
    if folder.is_symlink():
        return False
    try:
        found = read_folder(folder)
    except (TurnwrightError, OSError):
        return False
    return not found.links and digest(found.files) == expected


def _place(files: Mapping[str, bytes], final: Path) -> None:
    """Write beside the final place and move there; whoever moves first wins."""
    draft = final.with_name(f".draft-{uuid4().hex}")
    try:
        for name, content in files.items():
            file = draft / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o444)
        draft.mkdir(exist_ok=True)
        draft.rename(final)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not final.exists():
            raise
        return
    for folder, _, _ in os.walk(final):
        os.chmod(folder, 0o555)


def _set_aside(final: Path) -> None:
    aside = final.with_name(f".altered-{uuid4().hex}")
    try:
        final.rename(aside)
    except FileNotFoundError:
        return
    if aside.is_symlink() or not aside.is_dir():
        aside.unlink()
        return
    for folder, _, _ in os.walk(aside):
        os.chmod(folder, 0o755)
    shutil.rmtree(aside, ignore_errors=True)
