"""JSON Schema files of a package: parsed strictly and judged before anything is validated with them.

Dialect: JSON Schema 2020-12 alone. In it, siblings of `$ref` count, and `additionalProperties` sees only the
`properties` beside it, not those behind the `$ref` (catalogue H10). References stay inside one file, as
`#/$defs/name` or `#anchor`: a schema is sent to providers whole. A reference must name a place that is a
schema (H9); recursion through `properties` or `items` is fine (H8), a loop that never descends is not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from jsonschema_rs import ValidationError, meta

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, quoted
from kernel.patterns import fault

Schema: TypeAlias = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 5_000
_INT64: Final = 2**63
_MAX_DIGITS: Final = 20

_ONE: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Applicators that judge the same value again; a circle of these and `$ref` never ends."""

Pointer: TypeAlias = tuple[str, ...]


class _Refused(ValueError):
    """Why a schema file is refused, and what would be accepted."""

    def __init__(self, message: str, accepted: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.accepted, self.line = message, accepted, line


def read_schema(content: bytes, *, file: str) -> tuple[Schema | None, Diagnostic | None]:
    """Parse and judge one schema file; never raises. One of the two answers is None."""
    try:
        return _read(content), None
    except _Refused as refused:
        message = f"{file}: {refused.message}"
        return None, Diagnostic(Code.PACKAGE_SCHEMA, message, file, refused.line, accepted=refused.accepted)


def read_json(content: bytes) -> tuple[Any, str]:
    """Parse a JSON file by the same rules; the value, and why there is none, or an empty text."""
    try:
        return _parse(content), ""
    except _Refused as refused:
        return None, refused.message


def check_schema(schema: Any) -> str:
    """Judge a parsed schema by the same rules; the answer is the reason of a refusal, or empty."""
    try:
        _judge(schema)
    except _Refused as refused:
        return refused.message
    return ""


def _read(content: bytes) -> Schema:
    schema = _parse(content)
    if not isinstance(schema, dict):
        raise _Refused("is not a JSON Schema object", 'an object, as {"type": "object"}')
    _judge(schema)
    return schema


def _parse(content: bytes) -> Any:
    if len(content) > MAX_BYTES:
        raise _Refused(f"is larger than {MAX_BYTES} bytes", f"at most {MAX_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
        data = json.loads(
            text,
            object_pairs_hook=_pairs,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except _Refused:
        raise
    except json.JSONDecodeError as error:
        raise _Refused(f"is not JSON: {error.msg}", "JSON", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise _Refused(f"is not JSON: {type(error).__name__}", "JSON in UTF-8") from None
    _measure(data)
    return data


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Refused(f"duplicate key {quoted(key)}", "each key once")
        found[key] = value
    return found


def _constant(text: str) -> Any:
    raise _Refused(f"number {text} is not finite", "a finite number")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS or not -_INT64 <= int(text) < _INT64:
        raise _Refused("an integer does not fit 64 bits", "a 64-bit integer")
    return int(text)


def _number(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise _Refused("a number is not finite", "a finite number")
    return value


def _measure(data: Any) -> None:
    """Bound depth and size, so that judging a schema is bounded too."""
    count, todo = 0, [(data, 0)]
    while todo:
        here, depth = todo.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            accepted = f"{MAX_DEPTH} levels and {MAX_NODES} values"
            raise _Refused("is nested too deeply or holds too many values", accepted)
        if isinstance(here, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in here):
            raise _Refused("text holds NUL or a lone surrogate", "Unicode text")
        if isinstance(here, dict):
            todo += [(part, depth + 1) for item in here.items() for part in item]
        elif isinstance(here, list):
            todo += [(part, depth + 1) for part in here]


def _judge(schema: Any) -> None:
    if not isinstance(schema, dict):
        raise _Refused("is not a JSON Schema object", "an object")
    if schema.get("$schema", DIALECT) not in (DIALECT, DIALECT + "#"):
        raise _Refused(f"declares the dialect {quoted(schema['$schema'])}", DIALECT)
    try:
        meta.validate(schema)
    except ValidationError as error:
        where = "/".join(str(part) for part in error.instance_path)
        message = f"is not valid JSON Schema at {quoted('#/' + where)}: {error.message[:200]}"
        raise _Refused(message, "JSON Schema 2020-12") from None
    except (RecursionError, ValueError) as error:
        raise _Refused(f"cannot be judged: {type(error).__name__}", "JSON Schema 2020-12") from None
    places = dict(_places(schema))
    _check_keywords(places)
    _check_circles(places, {at: _target(at, here, places) for at, here in places.items() if "$ref" in here})


def _places(schema: Any, at: Pointer = ()) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    """Every place of a document that is a schema; a property named `$ref` is not one (H9)."""
    if not isinstance(schema, dict):
        if isinstance(schema, bool):
            yield at, {}
        return
    yield at, schema
    for key, value in schema.items():
        if key in _ONE:
            yield from _places(value, (*at, key))
        elif key in _MANY and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from _places(inner, (*at, key, str(index)))
        elif key in _NAMED and isinstance(value, dict):
            for name, inner in value.items():
                yield from _places(inner, (*at, key, name))


def _check_keywords(places: Mapping[Pointer, Mapping[str, Any]]) -> None:
    for at, here in places.items():
        if "$id" in here and at:
            raise _Refused(f"$id inside a schema at {_show(at)}", "$id at the root alone")
        for key in ("$dynamicRef", "$recursiveRef"):
            if key in here:
                raise _Refused(f"{key} at {_show(at)} is not supported", "$ref")
        _check_patterns(at, here)
    if any("patternProperties" in here for here in places.values()):
        for at, here in places.items():
            if "unevaluatedProperties" in here:
                message = f"unevaluatedProperties at {_show(at)} goes not with patternProperties"
                raise _Refused(message, "additionalProperties")


def _check_patterns(at: Pointer, here: Mapping[str, Any]) -> None:
    for pattern in (*([here["pattern"]] if "pattern" in here else ()), *here.get("patternProperties", ())):
        if problem := fault(pattern):
            message = f"the pattern {quoted(pattern)} at {_show(at)} cannot be used: {problem}"
            raise _Refused(message, "RE2 syntax: no look-around, no back-references")


def _target(at: Pointer, here: Mapping[str, Any], places: Mapping[Pointer, Mapping[str, Any]]) -> Pointer:
    """The place that a `$ref` names."""
    ref = str(here["$ref"])
    if not ref.startswith("#"):
        remote = "remote" if ":" in ref else "another file"
        message = f"$ref {quoted(ref)} at {_show(at)} names {remote}"
        raise _Refused(message, "a reference in the same file, as #/$defs/name")
    fragment = unquote(ref[1:])
    if fragment and not fragment.startswith("/"):
        found = [place for place, schema in places.items() if schema.get("$anchor") == fragment]
    else:
        parts = fragment.split("/")[1:]
        target = tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
        found = [target] if target in places else []
    if not found:
        message = f"$ref {quoted(ref)} at {_show(at)} names no schema"
        raise _Refused(message, "a place that is a schema, as #/$defs/name")
    return found[0]


def _check_circles(places: Mapping[Pointer, Mapping[str, Any]], targets: Mapping[Pointer, Pointer]) -> None:
    """Refuse references that judge the same value for ever."""
    settled: set[Pointer] = set()
    for start in places:
        trail: list[Pointer] = []
        todo: list[tuple[Pointer, bool]] = [(start, False)]
        while todo:
            at, leaving = todo.pop()
            if leaving:
                settled.add(trail.pop())
            elif at in trail:
                raise _Refused(
                    f"$ref turns in a circle at {_show(at)}", "recursion through properties or items"
                )
            elif at not in settled:
                trail.append(at)
                todo.append((at, True))
                todo += [(inner, False) for inner in _same_value(at, places, targets)]


def _same_value(
    at: Pointer, places: Mapping[Pointer, Mapping[str, Any]], targets: Mapping[Pointer, Pointer]
) -> Iterator[Pointer]:
    """The places that judge the same value as this one."""
    if at in targets:
        yield targets[at]
    for key in _IN_PLACE & places[at].keys():
        inner = places[at][key]
        if isinstance(inner, list):
            yield from ((*at, key, str(index)) for index in range(len(inner)))
        elif key == "dependentSchemas":
            yield from ((*at, key, name) for name in inner)
        else:
            yield (*at, key)


def _show(at: Pointer) -> str:
    return quoted("#" + "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in at))
