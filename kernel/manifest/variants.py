"""Instructions in Chinese: `PLUGIN.zh.md` and `RUNTIME.zh.md`. Spec: plugin-model §29; seed 001.

A variant holds a body and the `content` of prompt segments; what it leaves out stays English. Everything else
that it says has to be what the English manifest says: a difference is told, and English counts. Contents of
segments are judged and not kept: no run of this version has a segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, FieldPath, Lines, line_of, quoted, show_path
from kernel.manifest.frontmatter import split_frontmatter
from kernel.manifest.yaml_core import parse_yaml

SUFFIX: Final = ".zh.md"
_PROMPT: Final = ("contributes", "prompt")


def variant_of(manifest: str) -> str:
    """The path of a manifest's Chinese variant: `RUNTIME.md` → `RUNTIME.zh.md`."""
    return manifest.removesuffix(".md") + SUFFIX


def read_variant(content: bytes, *, file: str, english: Any) -> tuple[str, list[Diagnostic]]:
    """Read a variant; never raises.

    Args:
        english: the data of the English manifest's frontmatter.

    Returns:
        its body, empty where English counts, and problems: an unreadable file is an error,
        a changed structure is advice.
    """
    front = split_frontmatter(content, file=file)
    if front.problem is not None:
        return "", [front.problem]
    document = parse_yaml(front.yaml, file=file, first_line=front.first_line)
    if document.problems:
        return "", list(document.problems)
    data = {} if document.data is None else document.data
    told = [*_changes(data, english, (), file, document.lines)]
    return front.body, told


def _changes(here: Any, there: Any, at: FieldPath, file: str, lines: Lines) -> Iterator[Diagnostic]:
    """Every place where a variant says something else than the English manifest."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key, value in here.items():
            if key not in there:
                yield _told(f"{quoted(str(key))} is not in the English version", (*at, key), file, lines)
            elif not _is_content(at, key):
                yield from _changes(value, there[key], (*at, key), file, lines)
    elif at == _PROMPT and isinstance(here, list) and isinstance(there, list):
        english = {one.get("id"): one for one in there if isinstance(one, Mapping)}
        for index, segment in enumerate(here):
            name = segment.get("id") if isinstance(segment, Mapping) else None
            if name in english:
                yield from _changes(segment, english[name], (*at, index), file, lines)
            else:
                yield _told(f"no English segment has the id {quoted(str(name))}", (*at, index), file, lines)
    elif here != there:
        yield _told("differs from the English version, which counts", at, file, lines)


def _is_content(at: FieldPath, key: Any) -> bool:
    return key == "content" and at[:2] == _PROMPT and len(at) == 3


def _told(message: str, at: FieldPath, file: str, lines: Lines) -> Diagnostic:
    shown = show_path(at)
    text = f"{shown}: {message}" if shown else message
    accepted = "the body, and content of contributes.prompt"
    return Diagnostic(Code.PACKAGE_ADVICE, text, file, line_of(lines, at), shown, accepted, severity="advice")
