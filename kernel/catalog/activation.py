"""Which packages of a session are active, and what keeps a set of packages from being activated.

Spec: plugin-model §5 (provider choice). This version activates exactly what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel.errors import Code, TurnwrightError
from kernel.manifest import ContractReference, Package, Runtime, unsupported
from kernel.prompt import unknown_roots
from kernel.prompt.templates import ROOTS


@dataclass(frozen=True)
class Problem:
    """Why a set of packages cannot be activated."""

    code: Code
    message: str
    accepted: str = ""


def activate(requested: Sequence[str], available: Mapping[str, Package]) -> tuple[Package, ...]:
    """The active packages, by id.

    Raises:
        TurnwrightError: the first problem's code; the message lists every problem.
    """
    missing = [
        Problem(Code.PACKAGE_UNKNOWN, f"no package {name!r} is known", ", ".join(sorted(available)))
        for name in sorted(set(requested) - set(available))
    ]
    active = tuple(available[name] for name in sorted(set(requested) & set(available)))
    problems = [*missing, *_problems(active)]
    if problems:
        message = "; ".join(problem.message for problem in problems)
        raise TurnwrightError(problems[0].code, message, accepted=problems[0].accepted)
    return active


def _problems(active: Sequence[Package]) -> Iterable[Problem]:
    yield from _unsupported(active)
    yield from _missing_providers(active)
    yield from _conflicts(active)
    yield from _two_stories(active)
    yield from _event_topics(active)
    yield from _ambiguous_inputs(active)


def _unsupported(active: Sequence[Package]) -> Iterable[Problem]:
    for package in active:
        for diagnostic in unsupported(package):
            yield Problem(Code.PACKAGE_UNSUPPORTED, f"package {package.id!r}: {diagnostic.render()}")
        for runtime in package.runtimes:
            for place in unknown_roots(runtime.body):
                message = f"package {package.id!r}: the prompt of {runtime.id} names {{{{ {place} }}}}"
                yield Problem(Code.PACKAGE_UNSUPPORTED, message, ", ".join(ROOTS))


def _missing_providers(active: Sequence[Package]) -> Iterable[Problem]:
    provided = {contract for package in active for contract in package.provides}
    for package in active:
        for contract in package.manifest.requires:
            if contract not in provided:
                message = f"package {package.id!r} requires {contract}, which no active package provides"
                yield Problem(
                    Code.ACTIVATION_MISSING_PROVIDER, message, f"a package that provides {contract}"
                )


def _ambiguous_inputs(active: Sequence[Package]) -> Iterable[Problem]:
    """A required input of one provider, where several would answer (DECISIONS 5)."""
    providers: dict[str, list[str]] = {}
    for runtime in _runtimes(active):
        if contract := runtime.manifest.io.output.contract:
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
                yield Problem(Code.ACTIVATION_AMBIGUOUS_PROVIDER, message, "one of them")


def _conflicts(active: Sequence[Package]) -> Iterable[Problem]:
    for package in active:
        for other in active:
            taken = {other.id, *other.provides} & set(package.manifest.conflicts)
            if other.id != package.id and taken:
                message = f"package {package.id!r} conflicts with {other.id!r} ({', '.join(sorted(taken))})"
                yield Problem(Code.ACTIVATION_CONFLICT, message, "one of the two")


def _two_stories(active: Sequence[Package]) -> Iterable[Problem]:
    stories = sorted(runtime.id for runtime in _runtimes(active) if runtime.manifest.io.visibility == "story")
    if len(stories) > 1:
        yield Problem(
            Code.ACTIVATION_TWO_STORIES, f"two story runtimes: {', '.join(stories)}", "one story runtime"
        )


def _event_topics(active: Sequence[Package]) -> Iterable[Problem]:
    owners: dict[str, str] = {}
    for package in active:
        for event in package.manifest.contributes.events:
            owner = owners.setdefault(event.topic, package.id)
            if owner != package.id:
                message = f"packages {owner!r} and {package.id!r} both declare the event {event.topic}"
                yield Problem(Code.ACTIVATION_EVENT_TOPIC, message, "one declarer of a topic")


def _runtimes(active: Sequence[Package]) -> Iterable[Runtime]:
    return (runtime for package in active for runtime in package.runtimes)
