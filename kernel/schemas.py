"""Judging a JSON value by a JSON Schema that a package ships (2020-12; nothing is ever fetched)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry

from kernel.wire.base import Json, outline

_KEPT = 512
_validators: OrderedDict[int, tuple[Mapping[str, Any], Draft202012Validator]] = OrderedDict()


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


def validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """The validator of a schema that is never changed; a broken one raises when it is used."""
    # Keyed by identity: packages are frozen, and hashing a large schema costs more than the check.
    known = _validators.get(id(schema))
    if known is None or known[0] is not schema:
        # The closed registry keeps a `$ref` to an address from being fetched.
        known = (schema, Draft202012Validator(schema, registry=Registry()))
        _validators[id(schema)] = known
        while len(_validators) > _KEPT:
            _validators.popitem(last=False)
    return known[1]
