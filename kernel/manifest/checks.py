"""The rules between the runtimes of a package and what the package declares.

Spec: plugin-model §1, §5, §7, §13, §28; decisions 2, 4, 13, 20, 21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from typing import Final

from kernel.errors import Code
from kernel.manifest.agent import BUILTIN_TOOLS
from kernel.manifest.bindings import input_problems, output_problems
from kernel.manifest.contributes import Contributes
from kernel.manifest.cycles import cycle_problems, turn_edges
from kernel.manifest.diagnostics import Diagnostic, FieldPath, quoted
from kernel.manifest.fields import RuntimeReference
from kernel.manifest.loaded import Origin, Runtime
from kernel.manifest.package import PluginManifest
from kernel.manifest.runtime import InputBinding
from kernel.manifest.schedule import STAGES
from kernel.manifest.schemas import Schema
from kernel.manifest.versions import DIALECT_VERSION, in_range
from kernel.manifest.well_known import WELL_KNOWN, restates
from kernel.manifest.whitelists import tool_problems

_ENTRY_PARTS: Final = ("tools", "services", "extensions", "hooks", "wires")


def package_problems(
    manifest: PluginManifest,
    runtimes: Sequence[Runtime],
    *,
    origin: Origin,
    entry: str | None,
    product_version: str,
    runtime_ids: Set[str],
    contracts: Mapping[str, Schema],
) -> Iterator[Diagnostic]:
    """Yield everything that is wrong between the parts of one package.

    `runtime_ids` also holds the runtimes that could not be read: naming one is not a second mistake.
    `contracts` are the public schemas that the package declares.
    """
    yield from _ranges(manifest, origin, product_version)
    yield from _entry(manifest.contributes, origin, entry)
    yield from _output_contracts(runtimes)
    yield from cycle_problems(runtimes)
    known = {runtime.id: runtime for runtime in runtimes}
    for runtime in runtimes:
        yield from _unknown_runtimes(runtime, runtime_ids)
        yield from _upstreams(runtime, known)
        yield from _committed_inputs(runtime, known)
        yield from output_problems(runtime)
        yield from input_problems(runtime, known, {**contracts, **WELL_KNOWN})
        yield from tool_problems(runtime, manifest.contributes)


def _ranges(manifest: PluginManifest, origin: Origin, product_version: str) -> Iterator[Diagnostic]:
    checks = (
        ("covel", manifest.covel, DIALECT_VERSION),
        ("turnwright", manifest.turnwright, product_version),
    )
    for name, text, version in checks:
        if text is not None and not in_range(version, text):
            message = f"the range {quoted(text)} leaves out {version}, which is running"
            yield origin.problem(Code.PACKAGE_RANGE, (name,), message, f"a range that holds {version}")


def _entry(contributes: Contributes, origin: Origin, entry: str | None) -> Iterator[Diagnostic]:
    for tool in contributes.tools:
        if tool.name in BUILTIN_TOOLS:
            message = f"{tool.name} is the name of a builtin tool"
            yield origin.problem(Code.PACKAGE_COMBINATION, ("contributes", "tools"), message, "another name")
    for name in _ENTRY_PARTS:
        if getattr(contributes, name) and entry is None:
            message = f"contributes.{name} needs an entry module that registers them"
            accepted = "server/__init__.py with `def register(host)`"
            yield origin.problem(Code.PACKAGE_REFERENCE, ("contributes", name), message, accepted)


def _output_contracts(runtimes: Sequence[Runtime]) -> Iterator[Diagnostic]:
    first: dict[str, str] = {}
    for runtime in runtimes:
        contract = runtime.manifest.io.output.contract
        if contract is None:
            continue
        if (other := first.setdefault(contract, runtime.id)) != runtime.id:
            message = f"ambiguous output contract {contract}: {other} and {runtime.id} both output it"
            at = ("io", "output", "contract")
            yield runtime.origin.problem(
                Code.PACKAGE_AMBIGUOUS_CONTRACT, at, message, "one runtime for each contract"
            )


def _upstreams(runtime: Runtime, known: Mapping[str, Runtime]) -> Iterator[Diagnostic]:
    """Refuse upstreams that can never have run; contracts are judged at activation."""
    for edge in turn_edges(runtime):
        if not isinstance(edge.source, RuntimeReference) or edge.source.runtime not in known:
            continue
        upstream = known[edge.source.runtime]
        if upstream.manifest.schedule.subagent_only:
            message = f"{upstream.id} is a sub-agent provider and never runs in a turn"
            yield runtime.origin.problem(Code.PACKAGE_COMBINATION, edge.at, message, "ctx.agents.run")
        elif edge.gates and _runs_later(upstream, runtime):
            message = f"{upstream.id} runs in a later stage, so this runtime would never run"
            yield runtime.origin.problem(
                Code.PACKAGE_COMBINATION, edge.at, message, "a runtime of the same or an earlier stage"
            )


def _runtime_references(runtime: Runtime) -> Iterator[tuple[str, FieldPath]]:
    schedule = runtime.manifest.schedule
    for field, references in (("needs", schedule.needs), ("after", schedule.after)):
        for index, reference in enumerate(references):
            if isinstance(reference, RuntimeReference):
                yield reference.runtime, ("schedule", field, index)
    for name, binding in runtime.manifest.io.inputs.items():
        if isinstance(binding.source, RuntimeReference):
            yield binding.source.runtime, ("io", "inputs", name, "from")


def _unknown_runtimes(runtime: Runtime, runtime_ids: Set[str]) -> Iterator[Diagnostic]:
    for name, at in _runtime_references(runtime):
        if name in runtime_ids:
            continue
        message = f"{quoted(name)} is no runtime of this package"
        if name.partition("/")[0] != runtime.package_id:
            message += "; other packages are reached by contract"
        near = get_close_matches(name, runtime_ids, n=3, cutoff=0.4) or sorted(runtime_ids)[:6]
        accepted = f"{', '.join(near)}, or a contract name@N"
        yield runtime.origin.problem(Code.PACKAGE_REFERENCE, at, message, accepted)


def _runs_later(upstream: Runtime, runtime: Runtime) -> bool:
    late, here = upstream.manifest.schedule.stage, runtime.manifest.schedule.stage
    return late is not None and here is not None and STAGES.index(late) > STAGES.index(here)


def _committed_inputs(runtime: Runtime, known: Mapping[str, Runtime]) -> Iterator[Diagnostic]:
    for name, binding in runtime.manifest.io.inputs.items():
        producer = _producer(binding, known)
        if producer is None or binding.scope != "committed":
            continue
        exported = producer.manifest.io.output.record_as
        if exported != binding.record_as:
            message = f"{producer.id} does not export {quoted(binding.record_as)}"
            at = ("io", "inputs", name, "recordAs")
            accepted = exported or f"io.output.recordAs in {producer.file}"
            yield runtime.origin.problem(Code.PACKAGE_REFERENCE, at, message, accepted)


def _producer(binding: InputBinding, known: Mapping[str, Runtime]) -> Runtime | None:
    source = binding.source
    return known.get(source.runtime) if isinstance(source, RuntimeReference) else None


def contract_problems(
    declared: Sequence[tuple[str, Schema, FieldPath]], shipped: Mapping[str, Schema], origin: Origin
) -> Iterator[Diagnostic]:
    """Judge the public schemas a package declares: against the host's, and against each other."""
    first: dict[str, Schema] = {}
    for contract, schema, at in declared:
        if contract in shipped and not restates(schema, contract):
            message = f"{contract} has a schema of the host; this one differs from it"
            yield origin.problem(Code.PACKAGE_CONTRACT, at, message, "the same schema, or none")
        elif first.setdefault(contract, schema) != schema:
            message = f"{contract} is declared with two schemas that differ"
            yield origin.problem(Code.PACKAGE_CONTRACT, at, message, "one schema for a contract")
