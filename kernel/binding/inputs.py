"""Binding what upstream runs produced to the names a runtime declared. Spec: plugin-model §7.

Only turn-scoped inputs from a runtime or a contract are bound here. A slot is

    {value, provenance: {pluginId, runtimeId}}      one provider
    {items: [{value, provenance}, …]}               every provider, by runtime id
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kernel.manifest import ContractReference, InputBinding, RuntimeReference
from kernel.pointer import MISSING, select
from kernel.wire.base import Json

Validate = Callable[[str, Json], str | None]
"""Judges a value by a schema: a local path, or `contract:<id>`.

Returns None when it fits and else says what is wrong; raises KeyError for a schema nobody publishes.
"""


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
    chosen: Mapping[str, str | None] | None = None,
) -> Bound:
    """Bind every input; one that fails leaves the others alone.

    Args:
        bindings: the declarations, in order.
        outputs: output of every run that this one may read, by runtime id.
        providers: active providers by contract.
        validate: judges values by contract and by `accepts`.
        chosen: the package that answers for an input of one provider, by input name, where it is decided.
    """
    binder = _Binder(outputs, providers, validate, chosen or {})
    slots: dict[str, Json] = {}
    missing: str | None = None
    for name, binding in bindings.items():
        try:
            slots[name] = binder.slot(name, binding)
        except _NoValueError as problem:
            binder.report(problem.trouble, name, str(problem))
            if binding.required and missing is None:
                missing = name
    return Bound(slots, missing, tuple(binder.diagnostics))


class _NoValueError(Exception):
    def __init__(self, trouble: Trouble, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble


class _Binder:
    def __init__(
        self,
        outputs: Mapping[str, Json],
        providers: Mapping[str, Sequence[str]],
        validate: Validate,
        chosen: Mapping[str, str | None],
    ) -> None:
        self._chosen = chosen
        self._outputs = outputs
        self._providers = providers
        self._validate = validate
        self.diagnostics: list[BindingDiagnostic] = []

    def report(self, trouble: Trouble, name: str, message: str) -> None:
        self.diagnostics.append(BindingDiagnostic(trouble, name, message))

    def slot(self, name: str, binding: InputBinding) -> Json:
        source = binding.source
        producers = self._producers(binding, self._chosen.get(name))
        if isinstance(source, ContractReference) and source.cardinality == "all":
            items = [self._item(binding, producer) for producer in producers]
            self._check_accepts(binding, [item["value"] for item in items])
            return {"items": items}
        if len(producers) > 1:
            message = f"{_named(binding)} has several providers, {producers[0]} is taken"
            self.report(Trouble.SEVERAL_PROVIDERS, name, message)
        item = self._item(binding, producers[0])
        self._check_accepts(binding, item["value"])
        return item

    def _producers(self, binding: InputBinding, chosen: str | None) -> list[str]:
        source = binding.source
        if binding.scope != "turn" or not isinstance(source, RuntimeReference | ContractReference):
            raise _NoValueError(Trouble.UNSUPPORTED, "only runtimes and contracts of this turn can be bound")
        known: Sequence[str] = ()
        if isinstance(source, RuntimeReference):
            known = (source.runtime,)
        else:
            known = self._providers.get(source.contract, ())
        wanted = [one for one in known if chosen in (None, one.partition("/")[0])]
        producers = sorted(producer for producer in wanted if producer in self._outputs)
        if not producers:
            raise _NoValueError(Trouble.NO_VALUE, f"{_named(binding)} has no value in this turn")
        return producers

    def _item(self, binding: InputBinding, producer: str) -> dict[str, Json]:
        value = self._value(binding, producer)
        plugin = producer.split("/", 1)[0]
        return {"value": value, "provenance": {"pluginId": plugin, "runtimeId": producer}}

    def _value(self, binding: InputBinding, producer: str) -> Json:
        """The selected part of one output, which as a whole satisfies its contract."""
        output = self._outputs[producer]
        contract = binding.source.contract if isinstance(binding.source, ContractReference) else None
        problem = self._judge_contract(contract, output)
        if problem:
            message = f"the output of {producer} breaks {contract}: {problem}"
            raise _NoValueError(Trouble.CONTRACT_INVALID, message)
        value = output if binding.select is None else select(output, binding.select)
        if value is MISSING:
            message = f"{binding.select} selects nothing in the output of {producer}"
            raise _NoValueError(Trouble.SELECTS_NOTHING, message)
        return value

    def _judge_contract(self, contract: str | None, output: Json) -> str | None:
        if contract is None:
            return None
        try:
            return self._validate(f"contract:{contract}", output)
        except KeyError:
            return None  # A contract without a schema takes any JSON (DECISIONS 21).

    def _check_accepts(self, binding: InputBinding, value: Json) -> None:
        if binding.accepts is None:
            return
        try:
            problem = self._validate(binding.accepts, value)
        except KeyError:
            message = f"nobody publishes {binding.accepts}"
            raise _NoValueError(Trouble.ACCEPTS_UNRESOLVED, message) from None
        if problem:
            raise _NoValueError(Trouble.ACCEPTS_INVALID, f"not accepted by {binding.accepts}: {problem}")


def _named(binding: InputBinding) -> str:
    source = binding.source
    return source.contract if isinstance(source, ContractReference) else getattr(source, "runtime", "")
