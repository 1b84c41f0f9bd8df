"""The files of a package as a closed world: which paths are sound, and where a reference leads.

Nothing here touches a disk: a package is a map of paths to bytes and of links to their targets.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, quoted

MAX_FILES: Final = 4_000
MAX_PACKAGE_BYTES: Final = 32 * 1024 * 1024
MAX_PATH: Final = 240
_MAX_HOPS: Final = 16
_MAX_PARTS: Final = 256
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class PathError(ValueError):
    """A path that leads out of the package or nowhere. `reason` completes "the path …"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PackageFiles:
    """The content of a package."""

    files: Mapping[str, bytes]
    links: Mapping[str, str]

    def resolve(self, reference: str, folder: str = "") -> str:
        """Follow a reference from a folder of the package, link by link.

        Returns:
            the path from the package root of what it names, which need not exist.

        Raises:
            PathError: the reference is absolute, leaves the package, or its links turn in a circle.
        """
        _check_text(reference)
        done: list[str] = []
        todo = [*folder.split("/"), *reference.split("/")][::-1]
        hops = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    raise PathError("leaves the package")
                done.pop()
                continue
            done.append(part)
            if (target := self.links.get("/".join(done))) is not None:
                hops += 1
                if hops > _MAX_HOPS or len(todo) > _MAX_PARTS:
                    raise PathError("follows too many links")
                _check_text(target)
                done.pop()
                todo.extend(target.split("/")[::-1])
        return "/".join(done)

    def find(self, reference: str, folder: str = "") -> str | None:
        """The file that a reference names, or None when the package has no such file."""
        path = self.resolve(reference, folder)
        return path if path in self.files else None

    def problems(self) -> Iterator[Diagnostic]:
        """Yield what is wrong with the paths, the links and the size."""
        if len(self.files) + len(self.links) > MAX_FILES:
            message = f"the package holds more than {MAX_FILES} files"
            yield Diagnostic(Code.PACKAGE_SIZE, message, "PLUGIN.md", accepted=f"at most {MAX_FILES}")
            return
        if sum(map(len, self.files.values())) > MAX_PACKAGE_BYTES:
            message = "the package is larger than 32 MiB"
            yield Diagnostic(Code.PACKAGE_SIZE, message, "PLUGIN.md", accepted="at most 32 MiB")
        for path in (*self.files, *self.links):
            if reason := _fault(path):
                yield _refuse(path, f"the path {quoted(path)} {reason}")
        yield from _collisions((*self.files, *self.links))
        for path in self.links:
            try:
                self.resolve(path)
            except PathError as error:
                yield _refuse(path, f"the link {quoted(path)} {error.reason}", "a link inside the package")


def _refuse(path: str, message: str, accepted: str = "plain relative POSIX paths") -> Diagnostic:
    return Diagnostic(Code.PACKAGE_PATH, message, quoted(path).strip("`"), accepted=accepted)


def _check_text(path: str) -> None:
    if path.startswith(("/", "~")) or path[1:2] == ":":
        raise PathError("is absolute")
    if "\\" in path:
        raise PathError("holds a backslash")
    if not path.isprintable() and any(unicodedata.category(c) in _INVISIBLE for c in path):
        raise PathError("holds an invisible character")


def _fault(path: str) -> str:
    """What makes a stored path unsound, or nothing."""
    try:
        _check_text(path)
    except PathError as error:
        return error.reason
    parts = path.split("/")
    if ".." in parts:
        return "leaves the package"
    if any(part in ("", ".") or part != part.strip() for part in parts):
        return "holds an empty part or spaces at an end"
    return f"is longer than {MAX_PATH}" if len(path) > MAX_PATH else ""


def _collisions(paths: Iterable[str]) -> Iterator[Diagnostic]:
    """Yield paths, and folders of paths, that another file system would not tell apart."""
    spelled: dict[str, str] = {}
    whole = set(paths)
    reported: set[str] = set()
    for path in sorted(whole):
        parts = path.split("/")[:_MAX_PARTS]
        for end in range(1, len(parts) + 1):
            name = "/".join(parts[:end])
            first = spelled.setdefault(_folded(name), name)
            if first != name and name not in reported:
                reported.add(name)
                message = f"{quoted(first)} and {quoted(name)} differ only in case or spelling"
                yield _refuse(path, message, "names that every file system tells apart")
            if end < len(parts) and name in whole and name not in reported:
                reported.add(name)
                yield _refuse(name, f"{quoted(name)} is both a file and a folder", "one of the two")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def folder_of(path: str) -> str:
    """The folder of a file, empty for the package root."""
    return path.rpartition("/")[0]
