"""Turns pydantic's errors into diagnostics that name the field, its line and what is near it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, FieldPath, Lines, line_of, quoted, show_path
from kernel.manifest.fields import FORM_MARK, REFUSALS, ManifestModel
from kernel.manifest.package import PACKAGE_WIDE_FIELDS, RETIRED_FIELDS
from kernel.manifest.runtime import RuntimeManifest

Model = TypeVar("Model", bound=ManifestModel)

_MAX_KNOWN: Final = 12
_MAX_PROBLEMS: Final = 200
_RETIRED_VALUES: Final = {
    ("trigger.type", "scheduled"): "auto with schedule.every",
    ("io.visibility", "plugin"): "system",
    ("agent.reasoning", "disabled"): "false",
}


def validate(
    model: type[Model], data: Any, *, file: str, lines: Lines
) -> tuple[Model | None, list[Diagnostic]]:
    """Read data as a model; the answer is the model, or every problem with its line."""
    if not isinstance(data, Mapping):
        message = f"{file} does not hold a map of fields"
        accepted = "fields, as `description: …`"
        return None, [Diagnostic(Code.PACKAGE_FIELD, message, file, 1, accepted=accepted)]
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        details = error.errors(include_url=False)
        found = [
            problem
            for detail in details[:_MAX_PROBLEMS]
            for problem in _explain(model, data, detail, file, lines)
        ]
        if (more := len(details) - _MAX_PROBLEMS) > 0:
            found.append(Diagnostic(Code.PACKAGE_FIELD, f"{more} more problems in {file}", file))
        return None, found


def _explain(
    model: type[ManifestModel], data: Any, detail: ErrorDetails, file: str, lines: Lines
) -> Iterator[Diagnostic]:
    loc = _written(detail["loc"], data)
    if detail["type"] == REFUSALS:
        for refusal in detail["ctx"]["found"]:
            path = (*loc, *refusal.at)
            message = f"{show_path(path)}: {refusal.message}"
            line = line_of(lines, path)
            yield Diagnostic(refusal.code, message, file, line, show_path(path), refusal.accepted)
        return
    code, message, accepted = _phrase(model, loc, detail)
    shown = show_path(loc)
    yield Diagnostic(code, f"{shown}: {message}", file, line_of(lines, loc), shown, accepted)


def _written(loc: tuple[str | int, ...], data: Any) -> FieldPath:
    """The place as the author wrote it: without union tags, and no deeper than a bare string."""
    path: list[str | int] = []
    here = data
    for part in loc:
        if isinstance(part, str) and (part.startswith(FORM_MARK) or part == "[key]"):
            continue
        if not isinstance(here, Mapping | list):
            break
        path.append(part)
        here = _inside(here, part)
    return tuple(path)


def _inside(here: Any, part: str | int) -> Any:
    if isinstance(here, Mapping):
        return here.get(part)
    return here[part] if isinstance(part, int) and part < len(here) else None


def _phrase(model: type[ManifestModel], loc: FieldPath, detail: ErrorDetails) -> tuple[Code, str, str]:
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return _unknown_field(model, loc)
    if kind == "missing":
        return Code.PACKAGE_FIELD, "is required", "this field"
    retired = _RETIRED_VALUES.get((show_path(loc[-2:]), value)) if isinstance(value, str) else None
    if retired is not None:
        return Code.PACKAGE_RETIRED, f"{quoted(value)} is of an older manifest", retired
    if kind == "literal_error":
        expected = str(detail["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
        return Code.PACKAGE_FIELD, f"{quoted(value)} is not one of its values", expected
    if kind == "string_pattern_mismatch":
        return Code.PACKAGE_FIELD, f"{quoted(value)} has the wrong form", str(detail["ctx"]["pattern"])
    message = detail["msg"].replace("Input should be", "should be")
    shown = f"{message}, not {quoted(value)}" if isinstance(value, str | int | float | None) else message
    return Code.PACKAGE_FIELD, shown, _expected(kind)


def _expected(kind: str) -> str:
    return {
        "bool_type": "true or false",
        "int_type": "an integer",
        "float_type": "a number",
        "string_type": "a string; put it in quotes",
        "dict_type": "a map",
        "model_type": "a map",
        "tuple_type": "a list",
        "reference_form": "{ contract: <name>@<N> } or { runtime: <id> }",
    }.get(kind, "")


def _unknown_field(model: type[ManifestModel], loc: FieldPath) -> tuple[Code, str, str]:
    name = str(loc[-1])
    known = sorted(_known_fields(model, loc[:-1]))
    if model is RuntimeManifest and len(loc) == 1 and name in PACKAGE_WIDE_FIELDS:
        message = f"{quoted(name)} belongs to the package"
        return Code.PACKAGE_FIELD, message, f"{name} in PLUGIN.md"
    if name in RETIRED_FIELDS:
        message = f"{quoted(name)} is of an older manifest"
        return Code.PACKAGE_RETIRED, message, RETIRED_FIELDS[name]
    near = get_close_matches(name[:64], known, n=3, cutoff=0.6)
    some = known[:_MAX_KNOWN] + (["…"] if len(known) > _MAX_KNOWN else [])
    message = f"unknown field {quoted(name)}"
    return (
        Code.PACKAGE_FIELD,
        f"{message}; did you mean {near[0]}?" if near else message,
        ", ".join(near or some),
    )


def _known_fields(model: type[ManifestModel], loc: FieldPath) -> set[str]:
    """The fields that may stand at a place: follow the annotations along the path."""
    here: list[Any] = [model]
    for part in loc:
        here = [inner for annotation in here for inner in _step(annotation, part)]
    return {
        field.alias or name
        for annotation in here
        for candidate in _unwrap(annotation)
        if isinstance(candidate, type) and issubclass(candidate, BaseModel)
        for name, field in candidate.model_fields.items()
    }


def _step(annotation: Any, part: str | int) -> Iterator[Any]:
    for candidate in _unwrap(annotation):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            for name, field in candidate.model_fields.items():
                if part == (field.alias or name):
                    yield field.annotation
        elif get_origin(candidate) is tuple:
            yield get_args(candidate)[0]
        elif get_origin(candidate) is dict:
            yield get_args(candidate)[1]


def _unwrap(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _unwrap(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _unwrap(member)
    else:
        yield annotation
