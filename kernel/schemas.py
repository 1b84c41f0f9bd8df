"""Judging a JSON value by a JSON Schema that a package ships (2020-12; nothing is ever fetched)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from referencing import Registry

from kernel.patterns import found
from kernel.wire.base import Json, outline


def _pattern(validator: Any, pattern: str, instance: Json, _: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Json, _: Any
) -> Iterator[ValidationError]:
    for name, value in instance.items() if isinstance(instance, dict) else ():
        for pattern, inner in patterns.items():
            if found(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, inner: Any, instance: Json, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in (name for name in instance if name not in known):
        if any(found(pattern, name) for pattern in patterns):
            continue
        if inner is False:
            yield ValidationError(f"Additional properties are not allowed ({name!r} was unexpected)")
        elif inner is not True:
            yield from validator.descend(instance[name], inner, path=name)


Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    },
)
"""JSON Schema 2020-12 whose patterns take linear time: what a package wrote cannot hold a worker up."""

_KEPT = 512
_validators: OrderedDict[int, tuple[Mapping[str, Any], Any]] = OrderedDict()


def problem(schema: Mapping[str, Any], value: Json) -> str | None:
    """What in the value breaks the schema, with the place; None when it fits."""
    try:
        error = best_match(validator(schema).iter_errors(value))
    except Exception as defect:  # a schema that cannot be applied must not fail more than its own run
        return outline(f"the schema cannot be applied: {defect}")
    if error is None:
        return None
    place = "/".join(str(part) for part in error.absolute_path)
    return outline(f"at {place or '/'}: {error.message}")


def validator(schema: Mapping[str, Any]) -> Any:
    """The validator of a schema that is never changed; a broken one raises when it is used."""
    # Keyed by identity: packages are frozen, and hashing a large schema costs more than the check.
    known = _validators.get(id(schema))
    if known is None or known[0] is not schema:
        # The closed registry keeps a `$ref` to an address from being fetched.
        known = (schema, Validator(schema, registry=Registry()))
        _validators[id(schema)] = known
        while len(_validators) > _KEPT:
            _validators.popitem(last=False)
    return known[1]
