"""What a handler takes: how many arguments, of which types."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, NamedTuple

from pydantic import ValidationError

from kernel.errors import Code
from link.converter import adapter, reasons, refuse, type_name


class Parameter(NamedTuple):
    """One argument; `hint` is None where the handler names no type."""

    name: str
    hint: Any
    required: bool


class Signature(NamedTuple):
    """A handler's arguments under the name that messages call it."""

    what: str
    parameters: tuple[Parameter, ...]

    @classmethod
    def of_method(cls, what: str, method: Callable[..., Any]) -> Signature:
        """The signature of a handler as its class declares it, without `self`."""
        return cls(what, _parameters(method))

    @classmethod
    def of_start(cls, what: str, run: Callable[..., Any]) -> Signature:
        """The signature of a workflow's `run`.

        `input: X | None = None` reads as `input: X` here: the default lets a start without an
        argument come as far as this check, and does not make the argument optional.
        """
        parameters = tuple(_demanded(parameter) for parameter in _parameters(run))
        return cls(what, parameters)

    def checked(self, args: Sequence[Any]) -> list[Any]:
        """The arguments in their types, or a refusal.

        Arguments that came without a type, because some optional one was left out, get it here.

        Raises:
            ApplicationError: `wire.malformed`, with the count or the types that are taken.
        """
        least = sum(parameter.required for parameter in self.parameters)
        if not least <= len(args) <= len(self.parameters):
            refuse(
                Code.WIRE_MALFORMED, f"{self.what}: {len(args)} arguments given, taken are {self._taken()}"
            )
        return [self._checked_one(p, arg) for p, arg in zip(self.parameters, args, strict=False)]

    def _checked_one(self, parameter: Parameter, arg: Any) -> Any:
        if parameter.hint is None:
            return arg
        try:
            return adapter(parameter.hint).validate_python(arg)
        except ValidationError as error:
            expected = f"{parameter.name} must be {type_name(parameter.hint)}"
            refuse(Code.WIRE_MALFORMED, f"{self.what}: {expected}: {reasons(error)}")

    def _taken(self) -> str:
        if not self.parameters:
            return "none"
        return ", ".join(
            p.name if p.hint is None else f"{p.name}: {type_name(p.hint)}" for p in self.parameters
        )


@lru_cache(maxsize=256)
def _parameters(method: Callable[..., Any]) -> tuple[Parameter, ...]:
    try:
        hints = typing.get_type_hints(method)
    except NameError:  # a name that exists for type checkers only
        hints = {}
    positional = tuple(
        Parameter(p.name, hints.get(p.name), p.default is inspect.Parameter.empty)
        for p in inspect.signature(method).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    )
    return positional[1:]


def _demanded(parameter: Parameter) -> Parameter:
    if typing.get_origin(parameter.hint) not in (typing.Union, UnionType):
        return parameter
    kinds = [kind for kind in typing.get_args(parameter.hint) if kind is not NoneType]
    if len(kinds) == 1 and len(typing.get_args(parameter.hint)) == 2:
        return Parameter(parameter.name, kinds[0], required=True)
    return parameter
