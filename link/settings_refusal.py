"""Says what is wrong with a setting: the file or variable, the path, and what is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from kernel.errors import Code, TurnwrightError


def explain(
    error: ValidationError,
    model: type[BaseModel],
    file: Path | None,
    origins: Mapping[tuple[str, ...], str],
) -> TurnwrightError:
    """The refusal that a failed validation becomes; it speaks of the deepest fault.

    Where a setting may be a flag or a table, both are tried, and the deeper fault is the one meant.

    Args:
        origins: which environment variable each setting came from.
    """
    faults = error.errors(include_url=False, include_input=False)
    fault = max(faults, key=lambda fault: len(_setting_path(fault["loc"])))
    path = _setting_path(fault["loc"])
    source = _origin(path, origins) or (str(file) if file else "the settings")
    dotted = ".".join(path)
    if fault["type"] == "extra_forbidden":
        message, accepted = "unknown setting", ", ".join(_keys(model, path[:-1]))
    else:
        message, accepted = fault["msg"].removeprefix("Value error, "), _accepted(fault)
    where = f"{source}: {dotted}" if dotted else source
    return TurnwrightError(Code.CONFIG_INVALID, message, where=where, accepted=accepted)


def _setting_path(loc: tuple[int | str, ...]) -> tuple[str, ...]:
    """Drop what pydantic adds for unions (`bool`, `TlsSettings`): it is not a key of the file."""
    return tuple(str(part) for part in loc if part not in ("bool", "TlsSettings"))


def _origin(path: tuple[str, ...], origins: Mapping[tuple[str, ...], str]) -> str | None:
    for end in range(len(path), -1, -1):
        if path[:end] in origins:
            return origins[path[:end]]
    return None


def _keys(model: type[BaseModel], path: tuple[str, ...]) -> list[str]:
    """The keys that the table at `path` may have."""
    for part in path:
        found = _model_of(model.model_fields[part].annotation) if part in model.model_fields else None
        if found is None:
            return []
        model = found
    return [key for key in model.model_fields if key not in ("home", "config_file")]


def _model_of(annotation: Any) -> type[BaseModel] | None:
    candidates = (annotation, *get_args(annotation))
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _accepted(error: Any) -> str:
    context = error.get("ctx", {})
    expected = context.get("expected")
    return str(expected) if expected else {"greater_than_equal": "1 or more"}.get(error["type"], "")
