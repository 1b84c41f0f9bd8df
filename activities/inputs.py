"""What a run may read of its upstreams: outputs from the store, bound by kernel's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from activities.generations import Generations, Place
from kernel.binding import Bound, bind
from kernel.errors import Code, TurnwrightError
from kernel.manifest import WELL_KNOWN
from kernel.schemas import problem
from kernel.wire.base import Json
from store import runs
from store.connection import Connection


async def bound_inputs(
    conn: Connection, generations: Generations, place: Place, upstream: Sequence[str]
) -> Bound:
    """The input slots of a run.

    Args:
        upstream: runtimes of the turn whose success this run may read.
    """
    declared = place.runtime.manifest.io.inputs
    if not declared:
        return Bound({}, None, ())
    outputs = await runs.get_outputs(conn, place.turn_id, upstream)
    schemas = await _schemas(generations, place, upstream)
    providers = _providers(place, upstream)
    values = {runtime_id: run.output for runtime_id, run in outputs.items()}
    edges = place.generation.runtime_plan(place.runtime_id).inputs
    chosen = {name: edge.provider for name, edge in edges.items()}
    return bind(declared, values, providers, lambda ref, value: problem(schemas[ref], value), chosen)


def missing_input(bound: Bound) -> TurnwrightError:
    """Why a run is skipped: the first required input without a value."""
    said = next((found.message for found in bound.diagnostics if found.name == bound.missing), "no value")
    return TurnwrightError(Code.RUNTIME_INPUT, f"input {bound.missing}: {said}")


def _providers(place: Place, upstream: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for plan in place.generation.plan.runtimes:
        if plan.output and plan.runtime_id in upstream:
            found.setdefault(plan.output, []).append(plan.runtime_id)
    return found


async def _schemas(
    generations: Generations, place: Place, upstream: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Every schema that a binding may name: `contract:<id>`, and local paths of `accepts`."""
    found: dict[str, Mapping[str, Any]] = {
        f"contract:{contract}": schema for contract, schema in WELL_KNOWN.items()
    }
    for runtime_id in upstream:
        provider = (await generations.place(place.turn_id, runtime_id)).runtime
        contract = provider.manifest.io.output.contract
        if contract and provider.contract_schema is not None:
            found[f"contract:{contract}"] = provider.contract_schema
    for name, binding in place.runtime.manifest.io.inputs.items():
        if binding.accepts and name in place.runtime.input_schemas:
            found[binding.accepts] = place.runtime.input_schemas[name]
    return found


def output_problem(place: Place, output: Json) -> str | None:
    """What in an output breaks the runtime's private or public schema."""
    for schema in (place.runtime.output_schema, place.runtime.contract_schema):
        if schema is not None and (found := problem(schema, output)):
            return found
    return None
