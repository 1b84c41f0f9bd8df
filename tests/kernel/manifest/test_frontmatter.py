"""Cutting a manifest file in two."""

from __future__ import annotations

import pytest

from kernel.manifest import split_frontmatter
from kernel.manifest.yaml_core import MAX_BYTES


def test_frontmatter_and_body_are_cut() -> None:
    front = split_frontmatter(b"---\na: 1\n---\n\nHello\n---\nrest\n", file="f")
    assert (front.yaml, front.first_line, front.body) == (b"a: 1", 2, "Hello\n---\nrest")


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbf---\na: 1\n---\nx", b"---\r\na: 1\r\n---\r\nx\r\n", b"--- \na: 1\n---\t\nx"]
)
def test_windows_files_are_read(content: bytes) -> None:
    front = split_frontmatter(content, file="f")
    assert (front.problem, front.yaml, front.body) == (None, b"a: 1", "x")


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "package.layout", "has no frontmatter"),
        (b"Hello", "package.layout", "has no frontmatter"),
        (b"\n---\na: 1\n---\n", "package.layout", "has no frontmatter"),
        (b"----\na: 1\n----\n", "package.layout", "has no frontmatter"),
        (b"---js\nmodule\n---\n", "package.layout", "names an engine"),
        (b"---\na: 1\n", "package.layout", "is not closed"),
        (b"---\na: \xff\n---\n", "yaml.syntax", "is not UTF-8"),
        (b"-" * (MAX_BYTES + 1), "package.size", "larger than 1 MiB"),
    ],
)
def test_file_is_refused(content: bytes, code: str, words: str) -> None:
    problem = split_frontmatter(content, file="PLUGIN.md").problem
    assert problem is not None
    assert problem.code.value == code
    assert words in problem.message


def test_invalid_byte_names_its_line() -> None:
    problem = split_frontmatter(b"---\na: 1\nb: \xff\n---\n", file="f").problem
    assert problem is not None
    assert problem.line == 3
