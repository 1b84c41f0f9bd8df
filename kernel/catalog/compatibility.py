"""What keeps a set of packages from being active together, and inputs that will have no value.

Spec: plugin-model §5; DECISIONS 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernel.catalog.contracts import contract_problems
from kernel.catalog.problems import Problem
from kernel.catalog.providers import in_force
from kernel.errors import Code
from kernel.manifest import ContractReference, Package, Runtime, unsupported
from kernel.prompt.templates import ROOTS, unknown_places


def incompatible(active: Sequence[Package], choices: Mapping[str, str]) -> Iterable[Problem]:
    """Every problem of the set, what it is to run with the session's choices included."""
    yield from _unsupported(active)
    yield from _conflicts(active)
    yield from _two_stories(active)
    yield from _ambiguous_inputs(active, in_force(active, choices))
    yield from contract_problems(active)


def _unsupported(active: Sequence[Package]) -> Iterable[Problem]:
    for package in active:
        for diagnostic in unsupported(package):
            yield Problem(Code.PACKAGE_UNSUPPORTED, f"package {package.id!r}: {diagnostic.render()}")
        settings = [f"userSettings.{setting.key}" for setting in package.manifest.contributes.settings]
        for runtime in package.runtimes:
            for place in unknown_places(f"{runtime.body}\n{runtime.body_zh}", settings):
                message = f"package {package.id!r}: the prompt of {runtime.id} names {{{{ {place} }}}}"
                yield Problem(Code.PACKAGE_UNSUPPORTED, message, ", ".join((*ROOTS, *settings)))


def _conflicts(active: Sequence[Package]) -> Iterable[Problem]:
    holders: dict[str, list[str]] = {}
    for package in active:
        for name in (package.id, *package.provides):
            holders.setdefault(name, []).append(package.id)
    for package in active:
        taken: dict[str, list[str]] = {}
        for name in sorted(package.manifest.conflicts):
            for other in holders.get(name, ()):
                taken.setdefault(other, []).append(name)
        for other in sorted(taken.keys() - {package.id}):
            message = f"package {package.id!r} conflicts with {other!r} ({', '.join(taken[other])})"
            yield Problem(Code.ACTIVATION_CONFLICT, message, "one of the two")


def _two_stories(active: Sequence[Package]) -> Iterable[Problem]:
    stories = sorted(runtime.id for runtime in _runtimes(active) if runtime.manifest.io.visibility == "story")
    if len(stories) > 1:
        yield Problem(
            Code.ACTIVATION_TWO_STORIES, f"two story runtimes: {', '.join(stories)}", "one story runtime"
        )


def _ambiguous_inputs(active: Sequence[Package], decided: Mapping[str, str]) -> Iterable[Problem]:
    """A required input of one provider, where several would answer and nobody chose."""
    providers: dict[str, list[str]] = {}
    for runtime in _runtimes(active):
        contract = runtime.manifest.io.output.contract
        if contract and decided.get(contract, runtime.package_id) == runtime.package_id:
            providers.setdefault(contract, []).append(runtime.id)
    for runtime in _runtimes(active):
        for name, binding in runtime.manifest.io.inputs.items():
            source = binding.source
            if not (
                isinstance(source, ContractReference) and source.cardinality == "one" and binding.required
            ):
                continue
            if len(found := sorted(providers.get(source.contract, ()))) > 1:
                several = ", ".join(found)
                message = f"input {name} of {runtime.id} needs one {source.contract}; {several} provide it"
                yield Problem(Code.ACTIVATION_AMBIGUOUS_PROVIDER, message, "the choice of one")


def _runtimes(active: Sequence[Package]) -> Iterable[Runtime]:
    return (runtime for package in active for runtime in package.runtimes)
