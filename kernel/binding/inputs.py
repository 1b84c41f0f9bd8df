"""Binding what upstream runs produced to the names a runtime declared. Spec: plugin-model §7.

Only turn-scoped inputs from a runtime or a contract are bound here. A slot is

    {value, provenance: {pluginId, runtimeId}}      one provider
    {items: [{value, provenance}, …]}               every provider, by runtime id
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kernel.binding.pointer import MISSING, select
from kernel.wire.base import Json

Validate = Callable[[str, Json], str | None]
"""Judges a value by a schema: a local path, or `contract:<id>`.

Returns None when it fits and else says what is wrong; raises KeyError for a schema nobody publishes.
"""


class InputSource(BaseModel):
    """`from`: a runtime of the package, a contract, or a kernel input."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runtime: str | None = None
    contract: str | None = None
    cardinality: Literal["one", "all"] = "one"
    kernel: str | None = None


class InputBinding(BaseModel):
    """One entry of `io.inputs`, read from its manifest JSON (camelCase)."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    source: InputSource = Field(alias="from")
    scope: Literal["turn", "committed"] = "turn"
    select: str | None = None
    required: bool = True
    accepts: str | None = None
    record_as: str | None = Field(default=None, alias="recordAs")


class Trouble(StrEnum):
    """Why an input has no value, or a value that a person should look at."""

    NO_VALUE = "no-value"
    CONTRACT_INVALID = "contract-invalid"
    SELECTS_NOTHING = "selects-nothing"
    ACCEPTS_INVALID = "accepts-invalid"
    ACCEPTS_UNRESOLVED = "accepts-contract-unresolved"
    SEVERAL_PROVIDERS = "several-providers"
    UNSUPPORTED = "unsupported-source"


@dataclass(frozen=True, slots=True)
class BindingDiagnostic:
    """What happened to one input."""

    trouble: Trouble
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The inputs of one run.

    Attributes:
        slots: by input name; an input without a value has no slot.
        missing: the first required input without a value, in declaration order.
    """

    slots: dict[str, Json]
    missing: str | None
    diagnostics: tuple[BindingDiagnostic, ...]


def bind(
    bindings: Mapping[str, InputBinding],
    outputs: Mapping[str, Json],
    providers: Mapping[str, Sequence[str]],
    validate: Validate,
) -> Bound:
    """Bind every input; one that fails leaves the others alone.

    Args:
        bindings: the declarations, in order.
        outputs: output of every run that this one may read, by runtime id.
        providers: active providers by contract; only the chosen one where the session chose.
        validate: judges values by contract and by `accepts`.
    """
    slots: dict[str, Json] = {}
    missing: str | None = None
    diagnostics: list[BindingDiagnostic] = []
    for name, binding in bindings.items():
        try:
            slots[name] = _slot(name, binding, outputs, providers, validate, diagnostics)
        except _NoValueError as problem:
            diagnostics.append(BindingDiagnostic(problem.trouble, name, str(problem)))
            if binding.required and missing is None:
                missing = name
    return Bound(slots, missing, tuple(diagnostics))


class _NoValueError(Exception):
    def __init__(self, trouble: Trouble, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble


def _slot(
    name: str,
    binding: InputBinding,
    outputs: Mapping[str, Json],
    providers: Mapping[str, Sequence[str]],
    validate: Validate,
    diagnostics: list[BindingDiagnostic],
) -> Json:
    source = binding.source
    every = source.cardinality == "all" and source.contract is not None
    producers = _producers(binding, outputs, providers)
    if not every and len(producers) > 1:
        message = f"{source.contract} has several providers, {producers[0]} is taken"
        diagnostics.append(BindingDiagnostic(Trouble.SEVERAL_PROVIDERS, name, message))
    items = [
        {"value": _value(binding, producer, outputs[producer], validate), "provenance": _provenance(producer)}
        for producer in (producers if every else producers[:1])
    ]
    value = [item["value"] for item in items] if every else items[0]["value"]
    _check_accepts(binding, value, validate)
    return {"items": items} if every else items[0]


def _producers(
    binding: InputBinding, outputs: Mapping[str, Json], providers: Mapping[str, Sequence[str]]
) -> list[str]:
    source = binding.source
    if binding.scope != "turn" or source.kernel is not None:
        raise _NoValueError(
            Trouble.UNSUPPORTED, "only inputs of this turn from a runtime or contract are bound"
        )
    known = (source.runtime or "",) if source.contract is None else providers.get(source.contract, ())
    producers = sorted(producer for producer in known if producer in outputs)
    if not producers:
        raise _NoValueError(
            Trouble.NO_VALUE, f"{source.contract or source.runtime} has no value in this turn"
        )
    return producers


def _value(binding: InputBinding, producer: str, output: Json, validate: Validate) -> Json:
    """The selected part of one output, which as a whole satisfies its contract."""
    contract = binding.source.contract
    problem = _judge_contract(contract, output, validate) if contract else None
    if problem:
        message = f"the output of {producer} breaks {contract}: {problem}"
        raise _NoValueError(Trouble.CONTRACT_INVALID, message)
    value = output if binding.select is None else select(output, binding.select)
    if value is MISSING:
        message = f"{binding.select} selects nothing in the output of {producer}"
        raise _NoValueError(Trouble.SELECTS_NOTHING, message)
    return value


def _judge_contract(contract: str, output: Json, validate: Validate) -> str | None:
    try:
        return validate(f"contract:{contract}", output)
    except KeyError:
        return None  # A contract without a schema takes any JSON (DECISIONS 21).


def _check_accepts(binding: InputBinding, value: Json, validate: Validate) -> None:
    if binding.accepts is None:
        return
    try:
        problem = validate(binding.accepts, value)
    except KeyError:
        message = f"nobody publishes {binding.accepts}"
        raise _NoValueError(Trouble.ACCEPTS_UNRESOLVED, message) from None
    if problem:
        raise _NoValueError(Trouble.ACCEPTS_INVALID, f"not accepted by {binding.accepts}: {problem}")


def _provenance(producer: str) -> dict[str, str]:
    return {"pluginId": producer.split("/", 1)[0], "runtimeId": producer}
