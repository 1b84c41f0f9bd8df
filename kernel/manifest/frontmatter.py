"""Splits a manifest file into its frontmatter and the text below it. Spec: plugin-model §1."""

from __future__ import annotations

from dataclasses import dataclass

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, quoted
from kernel.manifest.yaml_core import MAX_BYTES

FENCE = "---"


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """A manifest file, cut in two.

    `yaml` starts at line `first_line` of the file. `body` has LF line ends and no blank lines around it.
    """

    yaml: bytes = b""
    first_line: int = 2
    body: str = ""
    problem: Diagnostic | None = None


def split_frontmatter(content: bytes, *, file: str) -> Frontmatter:
    """Cut `---` frontmatter from the body; never raises.

    Refused: a file without frontmatter, an unclosed one, and a fence that names an engine (`---js`).
    """
    if len(content) > MAX_BYTES:
        return _refuse(Code.PACKAGE_SIZE, "is larger than 1 MiB", file, "at most 1 MiB", None)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _refuse(Code.YAML_SYNTAX, "is not UTF-8", file, "UTF-8", line)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        return _refuse(Code.YAML_SYNTAX, "holds NUL", file, "text", line)
    rows = [row.removesuffix("\r") for row in text.split("\n")]
    opening = rows[0].rstrip()
    if opening != FENCE:
        return _refuse_opening(opening, file)
    for index, row in enumerate(rows[1:], start=1):
        if row.rstrip() == FENCE:
            inner = "\n".join(rows[1:index])
            return Frontmatter(inner.encode(), 2, "\n".join(rows[index + 1 :]).strip("\n"))
    return _refuse(Code.PACKAGE_LAYOUT, "frontmatter is not closed", file, "a second line `---`", 1)


def _refuse_opening(opening: str, file: str) -> Frontmatter:
    if opening.startswith(FENCE) and opening[3:4].isalpha():
        message = f"frontmatter fence {quoted(opening)} names an engine"
        return _refuse(Code.PACKAGE_LAYOUT, message, file, "`---` and plain YAML", 1)
    accepted = "`---` on the first line, YAML, and `---`"
    return _refuse(Code.PACKAGE_LAYOUT, "has no frontmatter", file, accepted, 1)


def _refuse(code: Code, message: str, file: str, accepted: str, line: int | None) -> Frontmatter:
    return Frontmatter(problem=Diagnostic(code, f"{file} {message}", file, line, accepted=accepted))
