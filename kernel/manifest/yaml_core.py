"""YAML as manifests use it: a strict profile of the YAML 1.2 core schema.

    true True TRUE false False FALSE   booleans; `yes`, `no`, `on`, `off`, `NO` are strings
    null Null NULL ~ (empty)           null
    12 -3 0o17 0x1f                    integers of at most 64 bits; `0666` is decimal 666, as in YAML 1.2
    1.5 .8 1e3                         numbers; `.inf`, `.nan` and overflowing ones are refused
    2024-01-01                         a string: there are no timestamps

Refused by name: duplicate keys, keys that are not strings, every explicit tag, a second document, aliases
past a cap, NUL and lone surrogates. `<<` is an ordinary key. Spec: plugin-model §1; catalogue H1-H3, H5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, FieldPath, Lines, quoted, show_path

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_NODES = 50_000
MAX_ALIAS_NODES = 2_000
"""How many nodes all aliases of one document may add together."""
MAX_ALIAS_TEXT = 64 * 1024
"""How many characters all aliases of one document may add together."""

_LOADER: Any = getattr(yaml, "CLoader", yaml.Loader)
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_MAX_DIGITS = 24
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """Plain data, the line of every place in it, and what was wrong.

    `data` is None when there is any problem.
    """

    data: Any
    lines: Lines
    problems: tuple[Diagnostic, ...] = ()


def parse_yaml(content: bytes, *, file: str, first_line: int = 1) -> YamlDocument:
    """Read one YAML document; never raises.

    Args:
        content: UTF-8, at most 1 MiB; a leading byte order mark is ignored.
        file: the name that problems carry.
        first_line: the line of `content` in that file, for YAML that stands inside another file.
    """
    builder = _Builder(file, first_line)
    try:
        data = builder.document(content)
    except _Stop:
        data = None
    except yaml.YAMLError as error:
        builder.syntax(error)
    except (ValueError, OverflowError, RecursionError) as error:
        builder.note(Code.YAML_SYNTAX, f"cannot be read as YAML: {type(error).__name__}", None)
    if builder.problems:
        return YamlDocument(None, builder.lines, tuple(sorted(builder.problems)))
    return YamlDocument(data, builder.lines)


class _Stop(Exception):
    """Reading cannot go on; the problem is already noted."""


@dataclass(slots=True)
class _Node:
    """A finished value with its expanded size, so that an alias to it can be charged."""

    value: Any
    nodes: int = 1
    text: int = 0


@dataclass(slots=True)
class _Builder:
    file: str
    first_line: int
    lines: Lines = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)
    anchors: dict[str, _Node | None] = field(default_factory=dict)
    events: Iterator[Any] = field(default_factory=lambda: iter(()))
    nodes: int = 0
    alias_nodes: int = 0
    alias_text: int = 0

    def document(self, content: bytes) -> Any:
        self.events = iter(yaml.parse(self.decode(content), Loader=_LOADER))
        next(self.events)
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            return None
        if getattr(start, "version", None) not in (None, (1, 2)):
            self.stop(Code.YAML_SYNTAX, "declares another YAML version", start, accepted="YAML 1.2")
        node = self.build(next(self.events), (), 0)
        next(self.events)
        if isinstance(second := next(self.events), yaml.DocumentStartEvent):
            self.note(Code.YAML_SYNTAX, "holds a second YAML document", second, accepted="one document")
        return node.value

    def decode(self, content: bytes) -> str:
        if len(content) > MAX_BYTES:
            self.stop(Code.PACKAGE_SIZE, "is larger than 1 MiB", None, accepted="at most 1 MiB")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.stop(Code.YAML_SYNTAX, "is not UTF-8", None, accepted="UTF-8")

    def build(self, event: Any, path: FieldPath, depth: int) -> _Node:
        self.lines.setdefault(path, self.line(event))
        return self.value(event, path, depth)

    def value(self, event: Any, path: FieldPath, depth: int) -> _Node:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.stop(Code.PACKAGE_SIZE, "holds too many values", event, accepted=f"at most {MAX_NODES}")
        if depth > MAX_DEPTH:
            self.stop(Code.PACKAGE_SIZE, "is nested too deeply", event, accepted=f"{MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if event.tag is not None:
            message = f"explicit tag {quoted(event.tag)} at {show_path(path) or 'the root'}"
            self.note(Code.YAML_TAG, message, event, accepted="untagged values; quotes make a string")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = self.content(event, path, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def content(self, event: Any, path: FieldPath, depth: int) -> _Node:
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(path, depth)
        return self.mapping(path, depth)

    def alias(self, event: Any) -> _Node:
        if event.anchor not in self.anchors:
            self.stop(Code.YAML_ALIAS, f"alias {quoted('*' + event.anchor)} has no anchor", event)
        node = self.anchors[event.anchor]
        if node is None:
            self.stop(Code.YAML_ALIAS, f"alias {quoted('*' + event.anchor)} refers to itself", event)
        self.alias_nodes += node.nodes
        self.alias_text += node.text
        if self.alias_nodes > MAX_ALIAS_NODES or self.alias_text > MAX_ALIAS_TEXT:
            accepted = f"aliases that add {MAX_ALIAS_NODES} values and {MAX_ALIAS_TEXT} characters"
            self.stop(Code.YAML_ALIAS, "aliases expand to too much", event, accepted=accepted)
        return node

    def sequence(self, path: FieldPath, depth: int) -> _Node:
        whole = _Node([])
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            item = self.build(event, (*path, len(whole.value)), depth + 1)
            whole.value.append(item.value)
            whole.nodes += item.nodes
            whole.text += item.text
        return whole

    def mapping(self, path: FieldPath, depth: int) -> _Node:
        whole = _Node({})
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.key(event, path, whole.value)
            inner = (*path, key)
            self.lines[inner] = self.line(event)
            item = self.build(next(self.events), inner, depth + 1)
            whole.value[key] = item.value
            whole.nodes += item.nodes + 1
            whole.text += item.text + len(key)
        return whole

    def key(self, event: Any, path: FieldPath, seen: dict[str, Any]) -> str:
        if not isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
            self.stop(Code.YAML_SYNTAX, "a mapping key is a list or a mapping", event, accepted="a string")
        key = self.value(event, path, 0).value
        if not isinstance(key, str):
            message = f"a key under {show_path(path) or 'the root'} is not a string: {quoted(key)}"
            self.note(Code.YAML_SYNTAX, message, event, accepted="a string; put it in quotes")
            return str(key)
        if key in seen:
            where = show_path((*path, key))
            first = self.lines[(*path, key)]
            message = f"duplicate key {quoted(where)}: line {first} and line {self.line(event)}"
            self.note(Code.YAML_DUPLICATE_KEY, message, event, accepted="each key once", path=where)
        return key

    def scalar(self, event: Any) -> _Node:
        text: str = event.value
        if _NOT_TEXT.search(text):
            self.note(Code.YAML_SYNTAX, "text holds NUL or a lone surrogate", event, accepted="Unicode text")
        if not event.implicit[0] or event.style not in (None, ""):
            return _Node(text, text=len(text))
        return _Node(self.resolve(text, event), text=len(text))

    def resolve(self, text: str, event: Any) -> Any:
        if text in _NULL:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INTEGER.fullmatch(text):
            return self.integer(text, event)
        if _NOT_FINITE.fullmatch(text):
            return self.number(math.inf, text, event)
        if _FLOAT.fullmatch(text):
            return self.number(float(text), text, event)
        return text

    def integer(self, text: str, event: Any) -> int:
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        value = _INT64 if len(text) > _MAX_DIGITS else int(text[2:] if base != 10 else text, base)
        if not -_INT64 <= value < _INT64:
            message = f"integer {quoted(text[:40])} does not fit 64 bits"
            self.note(Code.YAML_NUMBER, message, event, accepted="a 64-bit integer, or a quoted string")
        return value

    def number(self, value: float, text: str, event: Any) -> float:
        if not math.isfinite(value):
            message = f"number {quoted(text[:40])} is not finite"
            self.note(Code.YAML_NUMBER, message, event, accepted="a finite number, or a quoted string")
        return value

    def line(self, event: Any) -> int:
        return int(event.start_mark.line) + self.first_line

    def note(self, code: Code, message: str, event: Any, *, accepted: str = "", path: str = "") -> None:
        line = None if event is None else self.line(event)
        self.problems.append(Diagnostic(code, message, self.file, line, path, accepted))

    def stop(self, code: Code, message: str, event: Any, *, accepted: str = "") -> NoReturn:
        self.note(code, message, event, accepted=accepted)
        raise _Stop

    def syntax(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
        line = None if mark is None else int(mark.line) + self.first_line
        self.problems.append(
            Diagnostic(Code.YAML_SYNTAX, f"not valid YAML: {reason}", self.file, line, accepted="YAML 1.2")
        )
