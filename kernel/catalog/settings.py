"""Settings of packages: what a player may set, and the values that a turn runs with.

    checked     a value that somebody wants to set, judged by its declaration
    joined      what is set, after a change
    effective   the value of every declared setting: player → world → default

Spec: plugin-model §27.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from kernel.errors import Code, TurnwrightError
from kernel.manifest import Package
from kernel.manifest.settings import Setting
from kernel.wire.base import MAX_TEXT_BYTES

Values = Mapping[str, Any]


def checked(package: Package, key: str, value: Any, slots: Collection[str]) -> Any:
    """Return a value that the setting can take; None takes back what was set.

    Args:
        slots: names of the configured model slots.

    Raises:
        TurnwrightError: `setting.unknown` for a key that is not declared, `setting.invalid`.
    """
    where = f"{package.id}.{key}"
    setting = next((one for one in package.manifest.contributes.settings if one.key == key), None)
    if setting is None:
        known = ", ".join(sorted(one.key for one in package.manifest.contributes.settings))
        raise TurnwrightError(
            Code.SETTING_UNKNOWN, f"package {package.id!r} has no setting {key!r}", accepted=known or "none"
        )
    if value is None:
        return None
    if not setting.allows(value) or not _storable(value):
        message = f"{_shown(value)} does not fit a setting of type {setting.type}"
        raise TurnwrightError(Code.SETTING_INVALID, message, where=where, accepted=_accepted(setting))
    if setting.type == "slot" and value not in slots:
        accepted = ", ".join(sorted(slots))
        message = f"{_shown(value)} is no configured model slot"
        raise TurnwrightError(Code.SETTING_INVALID, message, where=where, accepted=accepted)
    return value


def joined(settings: Mapping[str, Values], changes: Mapping[str, Values]) -> dict[str, dict[str, Any]]:
    """What is set after a change; null takes a value back."""
    result = {name: dict(values) for name, values in settings.items()}
    for name, values in changes.items():
        merged = {**result.get(name, {}), **values}
        result[name] = {key: value for key, value in merged.items() if value is not None}
    return {name: values for name, values in result.items() if values}


def effective(package: Package, player: Values, world: Values) -> dict[str, Any]:
    """The value of every declared setting; None where nobody gives one.

    A value that the declaration does not allow (any more) counts as not set: the package may be another
    version than the one it was set for.
    """
    return {
        setting.key: next(
            (
                layer[setting.key]
                for layer in (player, world)
                if setting.key in layer and setting.allows(layer[setting.key])
            ),
            setting.default,
        )
        for setting in package.manifest.contributes.settings
    }


def unfit(package: Package, values: Values) -> tuple[str, ...]:
    """Keys of set values that the package no longer declares, or no longer allows."""
    declared = {setting.key: setting for setting in package.manifest.contributes.settings}
    return tuple(
        key for key, value in sorted(values.items()) if key not in declared or not declared[key].allows(value)
    )


def places(values: Values) -> dict[str, str]:
    """The values as a prompt writes them, by the place that names them: `userSettings.<key>`."""
    return {f"userSettings.{key}": _written(value) for key, value in values.items()}


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _storable(value: Any) -> bool:
    if not isinstance(value, str):
        return True
    good = "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    return good and len(value.encode()) <= MAX_TEXT_BYTES


def _accepted(setting: Setting) -> str:
    match setting.type:
        case "toggle":
            return "true or false"
        case "select":
            return ", ".join(json.dumps(option.value, ensure_ascii=False) for option in setting.options)
        case "text" | "textarea" | "slot":
            return f"text of at most {MAX_TEXT_BYTES} bytes of UTF-8 without NUL"
    bounds = [
        f"{word} {_plain(bound)}"
        for word, bound in (("from", setting.min), ("to", setting.max), ("in steps of", setting.step))
        if bound is not None
    ]
    return " ".join(["a whole number" if setting.type == "integer" else "a number", *bounds])


def _plain(number: float) -> str:
    return f"{number:g}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"
