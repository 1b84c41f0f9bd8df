"""The public schemas of contracts across the active packages. Spec: plugin-model §7, §28; DECISIONS 21."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernel.catalog.problems import Problem
from kernel.errors import Code
from kernel.manifest import WELL_KNOWN, ContractReference, Package, Runtime
from kernel.manifest.bindings import mismatch
from kernel.manifest.schemas import Schema
from kernel.manifest.well_known import same_shape


def published(packages: Sequence[Package]) -> dict[str, tuple[str, Schema]]:
    """Contract → the first package, by ID, that publishes its schema, and the schema; without the host's."""
    found: dict[str, tuple[str, Schema]] = {}
    for package in sorted(packages, key=lambda one: one.id):
        for contract, schema in package.contract_schemas.items():
            if contract not in WELL_KNOWN:
                found.setdefault(contract, (package.id, schema))
    return found


def borrowed(packages: Sequence[Package]) -> dict[str, str]:
    """Contract → package, for every schema that a runtime is held against and that its own package lacks."""
    known = published(packages)
    wanted = {contract for package in packages for one in package.runtimes for contract in _wanted(one)}
    return {contract: known[contract][0] for contract in sorted(wanted) if contract in known}


def resolved(runtime: Runtime, schemas: Mapping[str, Schema]) -> Runtime:
    """The runtime with the schemas that other packages publish in place.

    Args:
        schemas: contract → schema.
    """
    if not any(contract in schemas for contract in _wanted(runtime)):
        return runtime
    io = runtime.manifest.io
    inputs = {
        name: schemas[contract]
        for name, binding in io.inputs.items()
        if (contract := binding.accepts_contract or "") in schemas and name not in runtime.input_schemas
    }
    return replace(
        runtime,
        contract_schema=runtime.contract_schema or schemas.get(io.output.contract or ""),
        input_schemas={**runtime.input_schemas, **inputs},
    )


def contract_problems(packages: Sequence[Package]) -> Iterator[Problem]:
    """Yield contracts that two packages describe differently, and inputs that can never have a value."""
    known = published(packages)
    yield from _disagreements(packages, known)
    schemas = {**{contract: schema for contract, (_, schema) in known.items()}, **WELL_KNOWN}
    for package in packages:
        for runtime in package.runtimes:
            yield from _inputs(runtime, schemas)


def _wanted(runtime: Runtime) -> Iterator[str]:
    """Contracts whose schema the runtime is held against and does not have."""
    io = runtime.manifest.io
    if io.output.contract is not None and runtime.contract_schema is None:
        yield io.output.contract
    for name, binding in io.inputs.items():
        if binding.accepts_contract is not None and name not in runtime.input_schemas:
            yield binding.accepts_contract


def _disagreements(packages: Sequence[Package], known: Mapping[str, tuple[str, Schema]]) -> Iterator[Problem]:
    for package in packages:
        for contract, schema in package.contract_schemas.items():
            first, other = known.get(contract, (package.id, schema))
            if first != package.id and not same_shape(schema, other):
                message = f"packages {first!r} and {package.id!r} publish different schemas of {contract}"
                yield Problem(Code.ACTIVATION_CONFLICT, message, "one schema of a contract")


def _inputs(runtime: Runtime, schemas: Mapping[str, Schema]) -> Iterator[Problem]:
    for name, binding in runtime.manifest.io.inputs.items():
        contract, blocks = binding.accepts_contract, binding.required
        accepted = runtime.input_schemas.get(name) or schemas.get(contract or "")
        if contract is not None and accepted is None:
            message = f"input {name} of {runtime.id} accepts {contract}, whose schema no active package has"
            yield _problem(runtime, Code.ACTIVATION_ACCEPTS, message, f"a package with {contract}", blocks)
        source = binding.source
        given = schemas.get(source.contract) if isinstance(source, ContractReference) else None
        if given is not None and (found := mismatch(binding, given, accepted)):
            message = f"input {name} of {runtime.id}: {found[1]}"
            yield _problem(runtime, Code.PACKAGE_SCHEMA, message, "", blocks)


def _problem(runtime: Runtime, code: Code, message: str, accepted: str, blocks: bool) -> Problem:
    """An input that is required blocks; another one is told of and has no value."""
    return Problem(code, message, accepted, runtime.package_id, blocks)
