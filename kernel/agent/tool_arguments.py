"""A tool call's arguments: from the model's raw text to an object that fits the tool's schema.

Nothing is repaired: text that does not parse never becomes an object that would run, least of all an empty
one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NoReturn

from jsonschema.exceptions import ValidationError, best_match

from kernel.agent.messages import ToolSpec, clean_json
from kernel.schemas import validator

ECHO_CHARS = 800
_DEEPEST = 64
_SCHEMA_ERRORS_SHOWN = 5
_REMEMBERED_CHARS = 2048
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class UnusableArguments(Exception):
    """Arguments that are no JSON object; the message is written for the model."""


def parse_object(raw: str) -> dict[str, Any]:
    """The object that `raw` spells, with clean strings.

    Raises:
        UnusableArguments: not JSON, not an object, or beyond what any tool needs; says where and echoes it.
    """
    if _shape(raw)[1] > _DEEPEST:
        raise UnusableArguments(
            f"The arguments are nested deeper than {_DEEPEST} levels. Received: {echo(raw)}"
        )
    value = _parse(raw)
    if not isinstance(value, dict):
        raise UnusableArguments(
            f"The arguments must be one JSON object: object expected, got {_kind(value)}. "
            f"Received: {echo(raw)}"
        )
    cleaned: dict[str, Any] = clean_json(value)
    return cleaned


def schema_violation(spec: ToolSpec, arguments: dict[str, Any]) -> str | None:
    """What in the arguments breaks the tool's schema, by field path; None when they fit."""
    try:
        errors = list(validator(spec.parameters).iter_errors(arguments))
    except Exception as defect:  # the package's schema is broken; that must not fail the run
        return f"The schema of `{spec.name}` cannot be applied: {echo(str(defect), 200)}"
    return _violations(errors) if errors else None


def replayable_arguments(raw: str) -> str:
    """Raw arguments as a provider accepts them back: an object as written, anything else as `{}`.

    A provider refuses the whole next request for one unparseable call in its history, or for one escaped
    lone surrogate; the model still reads what it wrote in that call's error result.
    """
    # Every step sends all earlier calls again.
    return _known_replayable(raw) if len(raw) <= _REMEMBERED_CHARS else _replayable(raw)


def _replayable(raw: str) -> str:
    try:
        value = parse_object(raw)
    except UnusableArguments:
        return "{}"
    return json.dumps(value, ensure_ascii=False) if _ESCAPED_SURROGATE.search(raw) else raw


_known_replayable = lru_cache(maxsize=1024)(_replayable)


def unterminated(raw: str) -> bool:
    """Whether the text stops before its JSON value is closed."""
    return not raw.strip() or _shape(raw)[0]


def echo(raw: str, limit: int = ECHO_CHARS) -> str:
    """At most `limit` characters of `raw`, with its true length when some are left out."""
    if len(raw) <= limit:
        return raw
    suffix = f"… ({len(raw)} characters)"
    return raw[: limit - len(suffix)] + suffix


def _parse(raw: str) -> Any:
    try:
        return json.loads(raw, parse_constant=_refuse_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise UnusableArguments(
            f"The arguments are not valid JSON: {error.msg} at line {error.lineno}, column {error.colno} "
            f"(character {error.pos}). Received: {echo(raw)}"
        ) from None
    except ValueError as error:  # an integer of thousands of digits
        raise UnusableArguments(
            f"The arguments hold an unusable number: {error}. Received: {echo(raw)}"
        ) from None


def _refuse_number(literal: str) -> NoReturn:
    raise UnusableArguments(f"The arguments hold {literal}, which is no JSON number.")


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        _refuse_number(echo(literal, 40))
    return number


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "array"


def _shape(raw: str) -> tuple[bool, int]:
    """Whether the text stops inside a string or bracket, and how deep it nests."""
    depth = deepest = 0
    in_string = escaped = False
    for char in raw:
        if in_string:
            in_string = escaped or char != '"'
            escaped = not escaped and char == "\\"
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "}]":
            depth -= 1
    return in_string or depth > 0, deepest


def _violations(errors: Sequence[ValidationError]) -> str:
    lines = sorted(_violation(error) for error in errors)
    more = len(lines) - _SCHEMA_ERRORS_SHOWN
    tail = [f"and {more} more"] if more > 0 else []
    listed = "; ".join(lines[:_SCHEMA_ERRORS_SHOWN] + tail)
    return f"The arguments do not fit the tool's schema: {listed}"


def _violation(error: ValidationError) -> str:
    closest = best_match([error]) or error
    return f"{_path(closest)}: {echo(closest.message, 200)}"


def _path(error: ValidationError) -> str:
    parts = [
        f"[{part}]" if isinstance(part, int) else f".{echo(str(part), 80)}" for part in error.absolute_path
    ]
    return "".join(parts).lstrip(".") or "arguments"
