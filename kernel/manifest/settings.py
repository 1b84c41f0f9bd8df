"""`contributes.settings`: values that a player may set. Spec: plugin-model §27; seed 001."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from kernel.manifest.diagnostics import quoted
from kernel.manifest.fields import NAME_PATTERN, Label, ManifestModel, Refusal, Text, UniqueItems

SettingType: TypeAlias = Literal[
    "text", "textarea", "number", "integer", "toggle", "select", "slider", "slot"
]
_LARGEST: Final = 2**53 - 1
"""Largest number of a setting: the largest integer that every JSON reader keeps exactly."""


class SettingOption(ManifestModel):
    """`contributes.settings[].options[]`."""

    value: str | int | float | bool = Field(description="The value that is stored.")
    label: Label | None = Field(None, description="The text that is shown.")


def _option(value: Any) -> Any:
    return value if isinstance(value, dict) else {"value": value}


class Setting(ManifestModel):
    """`contributes.settings[]`: a value that a player may set."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")] = Field(description="Its key.")
    type: SettingType = Field(description="One of the eight types.")
    default: Any = Field(None, description="Value when neither the player nor the world sets one.")
    label: Label | None = Field(None, description="Name shown to players.")
    description: Text | None = Field(None, description="What it does.")
    min: float | None = Field(None, description="Smallest value of a number, integer or slider.")
    max: float | None = Field(None, description="Largest value of a number, integer or slider.")
    step: Annotated[float, Field(gt=0)] | None = Field(None, description="Distance of two values.")
    options: UniqueItems[Annotated[SettingOption, BeforeValidator(_option)]] = Field(
        (), description="The values of a select."
    )

    def rules(self) -> Iterator[Refusal]:
        numeric = self.type in ("number", "integer", "slider")
        for name in ("min", "max", "step"):
            if getattr(self, name) is not None and not numeric:
                yield Refusal((name,), f"{name} goes with number, integer and slider", f"no {name}")
        if self.min is not None and self.max is not None and self.min > self.max:
            yield Refusal(("min",), "min is larger than max", "min <= max")
        if self.options and self.type != "select":
            yield Refusal(("options",), "options go with a select", "no options")
        if self.type == "select" and not self.options:
            yield Refusal(("options",), "a select needs options", "at least one option")
        values = [(type(option.value), option.value) for option in self.options]
        for index, value in enumerate(values):
            if value in values[:index]:
                message = f"the value {quoted(value[1])} is offered twice"
                yield Refusal(("options", index, "value"), message, "each value once")
        if self.type == "integer":
            for name in ("min", "max", "step"):
                if not float(getattr(self, name) or 0).is_integer():
                    yield Refusal((name,), f"{name} of an integer is not whole", "a whole number")
        if self.default is not None and not self.allows(self.default):
            message = f"default does not fit the type {self.type}"
            yield Refusal(("default",), message, "a value that the setting allows")

    def allows(self, value: Any) -> bool:
        """Whether a value fits the type, the bounds, the step and the options."""
        if self.type == "toggle":
            return isinstance(value, bool)
        if self.type == "select":
            return any(type(o.value) is type(value) and o.value == value for o in self.options)
        if self.type == "slot":
            return isinstance(value, str) and re.fullmatch(NAME_PATTERN[1:-1], value) is not None
        if self.type in ("text", "textarea"):
            return isinstance(value, str)
        if isinstance(value, bool) or not isinstance(value, int if self.type == "integer" else int | float):
            return False
        return self._within(value)

    def _within(self, value: float) -> bool:
        if not abs(value) <= _LARGEST:
            return False
        if (self.min is not None and value < self.min) or (self.max is not None and value > self.max):
            return False
        if self.step is None:
            return True
        steps = (value - (self.min or 0)) / self.step
        return (
            math.isfinite(steps) and abs(steps - round(steps)) < 1e-6
        )  # 0.3 is three steps of 0.1, whatever binary says
