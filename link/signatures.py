"""What a handler takes: how many arguments, of which types."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, NamedTuple

from pydantic import ValidationError

from kernel.errors import Code
from link.converter import check_type, reasons, refuse, type_name


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
    def of_handler(cls, what: str, handler: Callable[..., Any]) -> Signature:
        """The signature of a bound signal, query or update handler."""
        return cls(what, tuple(_parameters(handler)))

    @classmethod
    def of_start(cls, workflow_type: str, run: Callable[..., Any]) -> Signature:
        """The signature of a workflow's `run`, which stands unbound.

        `input: X | None = None` reads as `input: X` here: the default lets a start without an
        argument come as far as this check, and does not make the argument optional.
        """
        parameters = tuple(_demanded(parameter) for parameter in list(_parameters(run))[1:])
        return cls(f"start of {workflow_type}", parameters)

    def check(self, args: Sequence[Any]) -> None:
        """Refuse arguments that do not fit.

        Raises:
            ApplicationError: `wire.malformed`, with the count or the types that are taken.
        """
        least = sum(parameter.required for parameter in self.parameters)
        if not least <= len(args) <= len(self.parameters):
            refuse(
                Code.WIRE_MALFORMED, f"{self.what}: {len(args)} arguments given, taken are {self._taken()}"
            )
        for parameter, arg in zip(self.parameters, args, strict=False):
            self._check_one(parameter, arg)

    def _check_one(self, parameter: Parameter, arg: Any) -> None:
        if parameter.hint is None:
            return
        try:
            check_type(arg, parameter.hint)
        except ValidationError as error:
            expected = f"{parameter.name} must be {type_name(parameter.hint)}"
            refuse(Code.WIRE_MALFORMED, f"{self.what}: {expected}: {reasons(error)}")

    def _taken(self) -> str:
        if not self.parameters:
            return "none"
        return ", ".join(
            p.name if p.hint is None else f"{p.name}: {type_name(p.hint)}" for p in self.parameters
        )


def _parameters(handler: Callable[..., Any]) -> list[Parameter]:
    try:
        hints = typing.get_type_hints(handler)
    except NameError:  # a name that exists for type checkers only
        hints = {}
    return [
        Parameter(p.name, hints.get(p.name), p.default is inspect.Parameter.empty)
        for p in inspect.signature(handler).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]


def _demanded(parameter: Parameter) -> Parameter:
    if typing.get_origin(parameter.hint) not in (typing.Union, UnionType):
        return parameter
    kinds = [kind for kind in typing.get_args(parameter.hint) if kind is not NoneType]
    if len(kinds) == 1 and len(typing.get_args(parameter.hint)) == 2:
        return Parameter(parameter.name, kinds[0], required=True)
    return parameter
