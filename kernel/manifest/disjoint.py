"""Proves that two JSON Schemas have no value in common, or that a pointer leads to nothing in one.

Only what is sure is said: what these few rules cannot prove is judged when there is a value. Of patterns they
know the literal text that one starts with when it is anchored there. Spec: plugin-model §7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from kernel.manifest.schemas import Schema

_TYPES: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})
_NOTHING: Final[Schema] = {"not": {}}
_MAX_DEPTH: Final = 16
_MAX_STEPS: Final = 2_000
_PREFIX: Final = re.compile(r"\^((?:[A-Za-z0-9 _:/@-]|\\[.\-/])+)(?![*?{])")
_BOUNDS: Final = (
    ("number", "minimum", "maximum"),
    ("string", "minLength", "maxLength"),
    ("array", "minItems", "maxItems"),
    ("object", "minProperties", "maxProperties"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A place in a schema document: what its `$ref`s are resolved in, and the schema there."""

    root: Schema
    here: Any

    @classmethod
    def of(cls, schema: Schema) -> Shape:
        """The shape of a whole document."""
        return cls(schema, schema)

    def inside(self, schema: Any) -> Shape:
        """Another schema of the same document."""
        return Shape(self.root, schema)

    def parts(self) -> list[Shape]:
        """Every schema without `$ref` and `allOf` that a value has to satisfy; each of them once."""
        found: list[Shape] = []
        todo, seen = [self.here], set()
        while todo:
            here = todo.pop()
            if not isinstance(here, Mapping):
                found.append(self.inside(_NOTHING if here is False else {}))
            elif id(here) not in seen:
                seen.add(id(here))
                found.append(self.inside(here))
                todo += here.get("allOf", ())
                if "$ref" in here:
                    todo.append(_target(self.root, str(here["$ref"])))
        return found


def listed(shape: Shape) -> Shape:
    """The shape of a list of such values."""
    return Shape(shape.root, {"type": "array", "items": shape.here})


def select(shape: Shape, tokens: Sequence[str]) -> Shape | None:
    """What a JSON Pointer leads to; None when it is sure to lead to nothing.

    Args:
        tokens: of the pointer, unescaped.
    """
    for token in tokens:
        inner = [_step(part, token) for part in shape.parts()]
        if None in inner:
            return None
        known = [step.here for step in inner if step is not None and step.here != {}]
        shape = shape.inside({"allOf": known} if known else {})
    return shape


def clash(one: Shape, other: Shape) -> str:
    """Why no value can satisfy both, with the place; empty unless that is sure."""
    return _Proof().clash(one, other, "")


def _step(part: Shape, token: str) -> Shape | None:
    """One token further in one part: a schema, `{}` where nothing is known, None where nothing can be."""
    here, types = part.here, _types(part.here)
    if not types & {"object", "array"}:
        return None
    if types & {"object"}:
        if types & {"array"}:
            return part.inside({})
        return _property(part, token)
    if not re.fullmatch(r"0|[1-9][0-9]*", token) or len(token) > 9:
        return None
    index, prefix = int(token), here.get("prefixItems", ())
    if index >= here.get("maxItems", index + 1):
        return None
    inner = prefix[index] if index < len(prefix) else here.get("items", {})
    return None if inner is False else part.inside(inner)


def _property(part: Shape, name: str) -> Shape | None:
    here = part.here
    if name in (properties := here.get("properties", {})):
        return None if properties[name] is False else part.inside(properties[name])
    if here.get("patternProperties"):
        return part.inside({})
    more = here.get("additionalProperties", {})
    return None if more is False else part.inside(more)


@dataclass(slots=True)
class _Proof:
    """One attempt; past a depth or a number of steps it gives up, and so proves nothing."""

    depth: int = 0
    steps: int = 0

    def clash(self, one: Shape, other: Shape, at: str) -> str:
        if self.depth == _MAX_DEPTH or self.steps == _MAX_STEPS:
            return ""
        self.depth, self.steps = self.depth + 1, self.steps + 1
        try:
            return self._judge(one, other, at)
        finally:
            self.depth -= 1

    def _judge(self, one: Shape, other: Shape, at: str) -> str:
        ours, theirs = one.parts(), other.parts()
        every = [*ours, *theirs]
        for part in every:
            if part.here == _NOTHING:
                return f"nothing is allowed at {at or '/'}"
        if found := self._branches(ours, other, at) or self._branches(theirs, one, at):
            return found
        if not (types := frozenset[str].intersection(*map(_allowed_types, every))):
            return f"{_named_types(ours)} and {_named_types(theirs)} at {at or '/'}"
        if found := _values(every, at):
            return found
        reasons = [self._of_type(name, every, ours, theirs, at) for name in sorted(types)]
        return reasons[0] if all(reasons) else ""

    def _branches(self, parts: Sequence[Shape], other: Shape, at: str) -> str:
        """A choice of which every branch clashes with the other side."""
        for part in parts:
            for key in ("anyOf", "oneOf"):
                if branches := part.here.get(key):
                    reasons = [self.clash(part.inside(branch), other, at) for branch in branches]
                    if all(reasons):
                        return reasons[0]
        return ""

    def _of_type(
        self, name: str, every: Sequence[Shape], ours: Sequence[Shape], theirs: Sequence[Shape], at: str
    ) -> str:
        if found := _bounds(name, every, at):
            return found
        if name == "string":
            return _prefixes(ours, theirs, at)
        if name == "object":
            return self._properties(every, ours, theirs, at)
        if name == "array" and any(part.here.get("minItems", 0) > 0 for part in every):
            first = [self._item(parts) for parts in (ours, theirs)]
            return self.clash(first[0], first[1], f"{at}/0")
        return ""

    def _properties(
        self, every: Sequence[Shape], ours: Sequence[Shape], theirs: Sequence[Shape], at: str
    ) -> str:
        for name in sorted({name for part in every for name in part.here.get("required", ())}):
            sides = [_all_of([_property(part, name) for part in parts]) for parts in (ours, theirs)]
            if None in sides:
                return f"{name} is required by one and not allowed by the other at {at or '/'}"
            first, second = sides
            if first and second and (found := self.clash(first, second, f"{at}/{name}")):
                return found
        return ""

    @staticmethod
    def _item(parts: Sequence[Shape]) -> Shape:
        inner = [
            (part.here["prefixItems"][0] if part.here.get("prefixItems") else part.here.get("items", {}))
            for part in parts
            if "array" in _types(part.here)
        ]
        return parts[0].inside({"allOf": inner} if inner else {})


def _all_of(shapes: Sequence[Shape | None]) -> Shape | None:
    """What satisfies all of them, of one document; None when one of them is impossible."""
    found = [shape for shape in shapes if shape is not None]
    return found[0].inside({"allOf": [one.here for one in found]}) if len(found) == len(shapes) else None


def _types(here: Schema) -> frozenset[str]:
    """The JSON types that a schema allows by `type` alone; integers are numbers."""
    named = here.get("type")
    if named is None:
        return _TYPES
    names = [named] if isinstance(named, str) else named
    return frozenset("number" if name == "integer" else name for name in names)


def _allowed_types(part: Shape) -> frozenset[str]:
    types = _types(part.here)
    if (values := _listed_values(part.here)) is not None:
        types &= {_type_of(value) for value in values}
    return types


def _named_types(parts: Sequence[Shape]) -> str:
    types = frozenset[str].intersection(*map(_allowed_types, parts))
    return " or ".join(sorted(types)) or "nothing"


def _type_of(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int | float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"


def _listed_values(here: Schema) -> list[Any] | None:
    if "const" in here:
        return [here["const"]]
    return here.get("enum")


def _values(every: Sequence[Shape], at: str) -> str:
    """Lists of values without a common one. Only texts: equality of numbers is not Python's."""
    lists = [values for part in every if (values := _listed_values(part.here)) is not None]
    if len(lists) < 2 or not all(isinstance(value, str) for values in lists for value in values):
        return ""
    common = set(lists[0]).intersection(*map(set, lists[1:]))
    return "" if common else f"no common value at {at or '/'}"


def _bounds(name: str, every: Sequence[Shape], at: str) -> str:
    for kind, least, most in _BOUNDS:
        if kind == name:
            low = max((part.here[least] for part in every if least in part.here), default=None)
            high = min((part.here[most] for part in every if most in part.here), default=None)
            if low is not None and high is not None and low > high:
                return f"{least} {low} and {most} {high} at {at or '/'}"
    return ""


def _prefixes(ours: Sequence[Shape], theirs: Sequence[Shape], at: str) -> str:
    for first in _anchored(ours):
        for second in _anchored(theirs):
            if not first.startswith(second) and not second.startswith(first):
                return f"texts that start with {first} and with {second} at {at or '/'}"
    return ""


def _anchored(parts: Sequence[Shape]) -> Iterator[str]:
    """Literal starts of anchored patterns."""
    for part in parts:
        pattern = part.here.get("pattern", "")
        if "|" not in pattern and (found := _PREFIX.match(pattern)):
            yield found[1].replace("\\", "")


def _target(root: Schema, ref: str) -> Any:
    """What a `$ref` names; the schema was judged, so it names something."""
    fragment = unquote(ref.removeprefix("#"))
    if fragment and not fragment.startswith("/"):
        return _anchor(root, fragment)
    here: Any = root
    for part in fragment.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        here = here[int(key)] if isinstance(here, list) else here[key]
    return here


def _anchor(root: Schema, name: str) -> Any:
    todo: list[Any] = [root]
    while todo:
        here = todo.pop()
        if isinstance(here, Mapping):
            if here.get("$anchor") == name:
                return here
            todo += here.values()
        elif isinstance(here, list):
            todo += here
    return {}
