"""Holds what a runtime reads and gives against schemas, before there is any value. Spec: plugin-model §7, §9.

output_problems    `io.output.schema` against the schema of `io.output.contract`
input_problems     `select` and `accepts` of inputs against what their source gives
mismatch           the rule behind the second, for sources of other packages too
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic
from kernel.manifest.disjoint import Shape, clash, listed, select
from kernel.manifest.fields import ContractReference, RuntimeReference
from kernel.manifest.loaded import Runtime
from kernel.manifest.runtime import InputBinding
from kernel.manifest.schemas import Schema
from kernel.pointer import parse


def output_problems(runtime: Runtime) -> Iterator[Diagnostic]:
    """Yield an output that could never satisfy both its private and its public schema."""
    own, public = runtime.output_schema, runtime.contract_schema
    if own is None or public is None:
        return
    if reason := clash(Shape.of(own), Shape.of(public)):
        message = f"no output satisfies this and {runtime.manifest.io.output.contract}: {reason}"
        at = ("io", "output", "schema")
        yield runtime.origin.problem(Code.PACKAGE_SCHEMA, at, message, "a schema that the contract's allows")


def input_problems(
    runtime: Runtime, known: Mapping[str, Runtime], contracts: Mapping[str, Schema]
) -> Iterator[Diagnostic]:
    """Yield inputs that can never have a value, as far as this package tells.

    Args:
        known: the runtimes of the package, by ID.
        contracts: the public schemas that the package knows.
    """
    for name, binding in runtime.manifest.io.inputs.items():
        for schema in _given(binding, known, contracts):
            if found := mismatch(binding, schema, runtime.input_schemas.get(name)):
                field, message = found
                at = ("io", "inputs", name, field)
                accepted = "what the source's schema allows"
                yield runtime.origin.problem(Code.PACKAGE_SCHEMA, at, message, accepted)
                break


def mismatch(binding: InputBinding, given: Schema, accepted: Schema | None) -> tuple[str, str] | None:
    """The field of an input that no value of its source can satisfy, and why; None unless that is sure.

    Args:
        given: a schema that every value of the source satisfies.
        accepted: the schema that `accepts` names, when there is one.
    """
    source = binding.source
    shape: Shape | None = Shape.of(given)
    if binding.select is not None:
        shape = select(Shape.of(given), parse(binding.select))
        if shape is None:
            return "select", f"{binding.select} leads to nothing in any value of {_named(source)}"
    if accepted is None or shape is None:
        return None
    if isinstance(source, ContractReference) and source.cardinality == "all":
        shape = listed(shape)
    if reason := clash(shape, Shape.of(accepted)):
        return "accepts", f"no value of {_named(source)} is accepted: {reason}"
    return None


def _given(
    binding: InputBinding, known: Mapping[str, Runtime], contracts: Mapping[str, Schema]
) -> Sequence[Schema]:
    """What is known of the source's values."""
    source = binding.source
    if isinstance(source, ContractReference):
        found = [contracts.get(source.contract)]
    elif isinstance(source, RuntimeReference) and source.runtime in known:
        producer = known[source.runtime]
        found = [producer.output_schema, producer.contract_schema]
    else:
        found = []
    return [schema for schema in found if schema is not None]


def _named(source: object) -> str:
    return source.contract if isinstance(source, ContractReference) else getattr(source, "runtime", "")
