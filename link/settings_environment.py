"""The environment variables of `link.settings`, and how their text becomes a setting."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kernel.errors import Code, TurnwrightError

CONFIG_VARIABLE: Final = "TURNWRIGHT_CONFIG"
HOME_VARIABLE: Final = "TURNWRIGHT_HOME"
WHOLE_VARIABLE: Final = "TURNWRIGHT_SETTINGS"
"""Holds all settings as JSON, from a parent process; nothing else is read where it is set."""


def _text(value: str) -> str:
    return value


def _paths(value: str) -> list[str]:
    return [part for part in value.split(os.pathsep) if part]


def _words(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _number(value: str) -> int:
    return int(value)


def _flag(value: str) -> bool:
    return {"1": True, "true": True, "0": False, "false": False}[value.lower()]


class Variable(NamedTuple):
    """One variable: the setting it stands for, and how its text is read."""

    path: tuple[str, str]
    read: Callable[[str], Any]
    accepted: str = "text"


VARIABLES: Final[Mapping[str, Variable]] = {
    "TURNWRIGHT_ADDRESS": Variable(("temporal", "address"), _text),
    "TURNWRIGHT_NAMESPACE": Variable(("temporal", "namespace"), _text),
    "TURNWRIGHT_QUEUE": Variable(("temporal", "queue"), _text),
    "TURNWRIGHT_API_KEY_ENV": Variable(("temporal", "api_key_env"), _text),
    "TURNWRIGHT_STORE": Variable(("store", "url"), _text),
    "TURNWRIGHT_PACKAGES": Variable(("packages", "path"), _paths),
    "TURNWRIGHT_PACKAGE_STORE": Variable(("packages", "store"), _text, "database, or a folder"),
    "TURNWRIGHT_WATCH": Variable(("packages", "watch"), _flag, "true or false"),
    "TURNWRIGHT_ENCRYPTION_KEY_ENV": Variable(("encryption", "key_env"), _text),
    "TURNWRIGHT_PREVIOUS_KEY_ENVS": Variable(("encryption", "previous_key_envs"), _words),
    "TURNWRIGHT_DEPLOYMENT": Variable(("deployment", "name"), _text),
    "TURNWRIGHT_BUILD_ID": Variable(("deployment", "build_id"), _text),
    "TURNWRIGHT_SET_CURRENT": Variable(("deployment", "set_current"), _flag, "true or false"),
    "TURNWRIGHT_APPROVAL_DEADLINE_S": Variable(("approvals", "deadline_s"), _number, "a whole number"),
    "TURNWRIGHT_ROLES": Variable(("worker", "roles"), _words),
    "TURNWRIGHT_SANDBOX": Variable(("worker", "sandbox"), _flag, "true or false"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": Variable(("telemetry", "otlp_endpoint"), _text),
    "TURNWRIGHT_OTLP_ENDPOINT": Variable(("telemetry", "otlp_endpoint"), _text),
    "TURNWRIGHT_TRACE_FILE": Variable(("telemetry", "trace_file"), _text),
}
"""A later variable wins over an earlier one of the same setting; an empty one counts as not set."""


def overlay(data: dict[str, Any], environ: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Lay the environment over the file's tables, in place.

    Returns:
        Which variable each overlaid setting came from, for messages.
    """
    origins: dict[tuple[str, ...], str] = {}
    for name, variable in VARIABLES.items():
        if value := environ.get(name):
            section, key = variable.path
            table = data.setdefault(section, {})
            if isinstance(table, dict):  # a wrong type is refused with its place by validation
                table[key] = _parse(name, variable, value)
                origins[variable.path] = name
    return origins


def _parse(name: str, variable: Variable, value: str) -> Any:
    try:
        return variable.read(value)
    except (ValueError, KeyError):
        raise TurnwrightError(
            Code.CONFIG_INVALID, f"{value[:80]!r} cannot be used", where=name, accepted=variable.accepted
        ) from None
