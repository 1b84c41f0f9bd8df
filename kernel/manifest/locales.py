"""Labels in other languages: `locales/<locale>.yaml`. Spec: plugin-model §29; seed 001.

A file has a section for each manifest file, and `messages` for the texts of UI and code. Inside a section the
places are those of the manifest; the items of a list are matched by `id`, `name`, `key` or `topic`. Labels
alone can be said in another language; whatever else stands there is ignored, and an error in validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, FieldPath, Lines, line_of, quoted, show_path
from kernel.manifest.yaml_core import parse_yaml

LABELS: Final = frozenset({"about", "description", "displayName", "label", "summary", "title"})
MESSAGES: Final = "messages"
_FILE: Final = re.compile(r"locales/([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)\.ya?ml")
_KEYS: Final = ("id", "name", "key", "topic")
_HANT: Final = frozenset({"tw", "hk", "mo"})


@dataclass(frozen=True)
class Locale:
    """The labels of one language.

    Attributes:
        labels: manifest file → place → text; list items stand by the word that names them.
        messages: texts of UI and code.
    """

    labels: Mapping[str, Mapping[FieldPath, str]] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)


def locale_of(path: str) -> str | None:
    """The language of a file of a package; None for a file that is none of labels."""
    found = _FILE.fullmatch(path)
    return found[1] if found else None


def choose_locale(wanted: str, offered: Sequence[str], fallback: str = "en") -> str | None:
    """The language to show: that one, one of the same language and script, English, or the first.

    `zh-Hant` never takes `zh`, which is Simplified.
    """
    if wanted in offered:
        return wanted
    near = [tag for tag in offered if _script(tag) == _script(wanted)]
    for tag in (*near, fallback):
        if tag in offered:
            return tag
    return offered[0] if offered else None


def read_locale(
    content: bytes, *, file: str, manifests: Mapping[str, Any]
) -> tuple[Locale, list[Diagnostic]]:
    """Read a file of labels; never raises.

    Args:
        manifests: data of the English manifests, by their paths.

    Returns:
        what counts of it, and problems: a file that cannot be read is an error, what is ignored is told.
    """
    document = parse_yaml(content, file=file, first_line=1)
    if document.problems:
        return Locale(), list(document.problems)
    data = {} if document.data is None else document.data
    if not isinstance(data, Mapping):
        return Locale(), [_ignored("is no map of sections", (), file, document.lines)]
    reader = _Reader(file, document.lines)
    labels: dict[str, dict[FieldPath, str]] = {}
    for section, inner in data.items():
        if section in manifests:
            labels[section] = dict(reader.labels(inner, manifests[section], (section,), ()))
        elif section != MESSAGES:
            known = ", ".join((*sorted(manifests), MESSAGES))
            reader.ignore(f"{quoted(str(section))} is no manifest of this package", (section,), known)
    return Locale(labels, dict(reader.messages(data.get(MESSAGES) or {}))), reader.problems


class _Reader:
    def __init__(self, file: str, lines: Lines) -> None:
        self.problems: list[Diagnostic] = []
        self._file, self._lines = file, lines

    def ignore(self, message: str, at: FieldPath, accepted: str = "") -> None:
        self.problems.append(_ignored(message, at, self._file, self._lines, accepted))

    def labels(
        self, here: Any, there: Any, at: FieldPath, place: FieldPath
    ) -> Iterator[tuple[FieldPath, str]]:
        """The labels below a place; `at` is where they stand in the file, `place` in the manifest."""
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            for key, value in here.items():
                if key in LABELS and isinstance(value, str):
                    yield (*place, key), value
                elif key in there and isinstance(value, Mapping | list):
                    yield from self.labels(value, there[key], (*at, key), (*place, key))
                elif key not in _KEYS or there.get(key) != value:
                    what = "is no label" if key in there else "is nowhere in the manifest"
                    self.ignore(f"{quoted(str(key))} {what}", (*at, key), ", ".join(sorted(LABELS)))
        elif isinstance(here, list) and isinstance(there, list):
            for index, item in enumerate(here):
                name, known = _named(item), {_named(one): one for one in there}
                if name is None or name not in known:
                    accepted = ", ".join(sorted(str(word) for word in known if word is not None))
                    self.ignore("matches no item of the manifest", (*at, index), accepted)
                else:
                    yield from self.labels(item, known[name], (*at, index), (*place, name))
        else:
            self.ignore("is no label", at, ", ".join(sorted(LABELS)))

    def messages(self, here: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(here, Mapping):
            self.ignore("is no map of texts", (MESSAGES,), "texts by their keys")
            return
        for key, value in here.items():
            if isinstance(value, str):
                yield str(key), value
            else:
                self.ignore(f"{quoted(str(key))} is no text", (MESSAGES, key), "a text")


def _named(item: Any) -> str | None:
    """The word that names an item of a list."""
    if isinstance(item, str):
        return item
    if isinstance(item, Mapping):
        return next((str(item[key]) for key in _KEYS if key in item), None)
    return None


def _script(tag: str) -> tuple[str, str]:
    """Language and script; Chinese without one is Simplified, but for the regions of the Traditional."""
    language, *rest = tag.replace("_", "-").lower().split("-")
    script = next((part for part in rest if len(part) == 4 and part.isalpha()), "")
    if not script and language == "zh":
        script = "hant" if _HANT & set(rest) else "hans"
    return language, script


def _ignored(message: str, at: FieldPath, file: str, lines: Lines, accepted: str = "") -> Diagnostic:
    shown = show_path(at)
    text = f"{shown}: {message}" if shown else f"{file} {message}"
    return Diagnostic(
        Code.PACKAGE_LOCALE, text, file, line_of(lines, at), shown, accepted, severity="ignored"
    )
