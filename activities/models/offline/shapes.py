"""A value that fits a JSON Schema, with words of the player's where the schema leaves the choice.

Enums take their first value, constants and defaults themselves, objects their required fields alone, arrays
at least one item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from referencing import Registry

from activities.models.offline.patterns import matching
from activities.models.offline.prose import Prose
from kernel.schemas import Validator

_DEEPEST = 12
_DEEP = 5  # from here on arrays are as short as allowed, so that recursive schemas end
_LONG_TEXT = ("text", "content", "description", "summary", "message", "body", "narration", "reason", "brief")
_FORMATS = {
    "date-time": "2024-05-01T12:00:00Z",
    "date": "2024-05-01",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    "email": "player@example.org",
    "uri": "https://example.org/",
    "uri-reference": "/example",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "json-pointer": "/a",
    "regex": ".*",
}
_COMMON_TEXTS = ("a", "1", "a1", "abc", "2024-05-01", "#336699", "https://example.org/")


def shaped(schema: Any, prose: Prose) -> Any:
    """A value for the schema, as good as can be made without solving it."""
    return _Shaper(schema, prose).value(schema, "", 0, 0)


class _Shaper:
    def __init__(self, root: Any, prose: Prose) -> None:
        self._root = root
        self._prose = prose

    def value(self, schema: Any, key: str, depth: int, nth: int) -> Any:
        """The value of one place; `nth` tells the items of an array apart."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return self._prose.word(nth)
        schema = self._flat(schema)
        for fixed in ("const", "default"):
            if fixed in schema:
                return schema[fixed]
        for listed in ("enum", "examples"):
            if isinstance(schema.get(listed), list) and schema[listed]:
                return schema[listed][nth % len(schema[listed])]
        for choice in ("anyOf", "oneOf"):
            if isinstance(schema.get(choice), list) and schema[choice]:
                return self._chosen(schema, choice, key, depth, nth)
        return self._typed(schema, key, depth, nth)

    def _typed(self, schema: Mapping[str, Any], key: str, depth: int, nth: int) -> Any:
        makers: dict[str, Callable[[], Any]] = {
            "object": lambda: self._object(schema, depth),
            "array": lambda: self._array(schema, key, depth),
            "string": lambda: self._string(schema, key, nth),
            "integer": lambda: int(_number(schema, whole=True)) + nth * int(schema.get("multipleOf", 1)),
            "number": lambda: _number(schema, whole=False) + nth * schema.get("multipleOf", 1),
            "boolean": lambda: True,
            "null": lambda: None,
        }
        return makers.get(_type(schema), makers["string"])()

    def _flat(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schema with references followed and `allOf` merged in."""
        merged = dict(schema)
        for _ in range(_DEEPEST):
            parts = [self._target(merged.pop("$ref"))] if "$ref" in merged else merged.pop("allOf", None)
            if not parts:
                return merged
            for part in parts:
                if isinstance(part, Mapping):
                    merged = _merge(merged, part)
        return merged

    def _target(self, reference: Any) -> Any:
        place = self._root
        if not str(reference).startswith("#"):
            return {}
        for part in str(reference)[1:].split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and name.isdigit() and int(name) < len(place):
                place = place[int(name)]
            else:
                place = place.get(name, {}) if isinstance(place, Mapping) else {}
        return place

    def _chosen(self, schema: dict[str, Any], choice: str, key: str, depth: int, nth: int) -> Any:
        base = {name: value for name, value in schema.items() if name != choice}
        branches = [_merge(base, self._flat(one)) for one in schema[choice] if isinstance(one, Mapping)]
        values = [self.value(branch, key, depth + 1, nth) for branch in branches[:8]]
        fitting = [value for value in values if value is not None and self._fits(value, schema)]
        return next(iter(fitting), values[0] if values else None)

    def _fits(self, value: Any, schema: Mapping[str, Any]) -> bool:
        definitions = {
            name: self._root[name]
            for name in ("$defs", "definitions")
            if isinstance(self._root, Mapping) and name in self._root
        }
        try:
            return bool(Validator({**definitions, **schema}, registry=Registry()).is_valid(value))
        except Exception:  # a schema that cannot be applied refuses nothing here
            return True

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known = schema.get("properties") or {}
        names = [name for name in schema.get("required") or () if isinstance(name, str)]
        spare = [name for name in known if name not in names] + [f"key{n}" for n in range(1, 9)]
        names += spare[: max(0, int(schema.get("minProperties", 0)) - len(names))]
        rest = schema.get("additionalProperties", {})
        return {name: self.value(known.get(name, rest), name, depth + 1, 0) for name in names}

    def _array(self, schema: Mapping[str, Any], key: str, depth: int) -> list[Any]:
        first = schema.get("prefixItems") or []
        least = int(schema.get("minItems", 0))
        count = max(least, len(first), 0 if depth >= _DEEP else 1)
        count = min(count, int(schema.get("maxItems", count)))
        items = schema.get("items", schema.get("contains", {}))
        kinds = [first[n] if n < len(first) else items for n in range(count)]
        vary = bool(schema.get("uniqueItems")) or count > 1
        return [self.value(kind, key, depth + 1, n if vary else 0) for n, kind in enumerate(kinds)]

    def _string(self, schema: Mapping[str, Any], key: str, nth: int) -> str:
        least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 4000))
        text = self._words(key, nth)
        if "pattern" in schema:
            usual = [one for one in (text, *self._prose.words, *_COMMON_TEXTS) if least <= len(one) <= most]
            return matching(str(schema["pattern"]), usual) or text
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        while len(text) < least:
            text += " " + self._prose.word(len(text) % 5)
        return text[:most].rstrip().ljust(least, ".")

    def _words(self, key: str, nth: int) -> str:
        name = key.lower()
        if name.endswith(_LONG_TEXT):
            return self._prose.story() if nth == 0 and name == "text" else self._prose.sentence(nth)
        word = self._prose.word(nth)
        return word.capitalize() if name.endswith(("name", "title", "label")) else word


def _type(schema: Mapping[str, Any]) -> str:
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((one for one in declared if one != "null"), "null")
    if isinstance(declared, str):
        return declared
    if any(word in schema for word in ("properties", "required", "minProperties", "additionalProperties")):
        return "object"
    if any(word in schema for word in ("items", "prefixItems", "minItems", "contains")):
        return "array"
    numeric = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    return "number" if any(word in schema for word in numeric) else "string"


def _number(schema: Mapping[str, Any], *, whole: bool) -> float:
    step = schema.get("multipleOf") or (1 if whole else 0)
    low = schema.get("minimum", -math.inf)
    high = schema.get("maximum", math.inf)
    nudge = step or 1e-6
    if "exclusiveMinimum" in schema:
        low = max(low, schema["exclusiveMinimum"] + nudge)
    if "exclusiveMaximum" in schema:
        high = min(high, schema["exclusiveMaximum"] - nudge)
    number: float = min(max(1, low), high)
    if not step:
        return number
    up: float = math.ceil(number / step) * step
    return up if up <= high else math.floor(high / step) * step


def _merge(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both schemas in one: properties and required fields are joined, other words taken from `base` first."""
    merged = {**other, **base}
    if "properties" in base and "properties" in other:
        merged["properties"] = {**other["properties"], **base["properties"]}
    if "required" in base and "required" in other:
        merged["required"] = list(dict.fromkeys([*other["required"], *base["required"]]))
    return merged
