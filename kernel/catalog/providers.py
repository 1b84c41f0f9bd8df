"""Who answers for a contract that several active packages provide. Spec: plugin-model §5; DECISIONS 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernel.manifest import Package


def is_default(package: Package, contract: str) -> bool:
    """Whether the package provides the contract only as long as nobody else does."""
    return any(one.default and one.contract == contract for one in package.manifest.provides)


def steps_aside(ranked: Sequence[Package], choices: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The default providers that leave, each as `(package, contract, the one it leaves for)`.

    A package leaves when others answer for everything that it provides. One that also provides a contract
    of its own stays; where others answer for the rest, `in_force` names them.

    Args:
        ranked: the active packages; of two default providers the first stays.
    """
    several = {contract: found for contract, found in _by_contract(ranked).items() if len(found) > 1}
    for package in ranked:
        contracts = package.provides
        if not contracts or not all(c in several and is_default(package, c) for c in contracts):
            continue
        first = {contract: _first(several[contract], contract, choices) for contract in contracts}
        if package.id not in first.values():
            yield package.id, contracts[0], first[contracts[0]]


def in_force(packages: Sequence[Package], choices: Mapping[str, str]) -> dict[str, str]:
    """Contract → package, for every contract of several providers where it is decided who answers.

    The session's choice decides, else a sole provider that is no default one.
    """
    found: dict[str, str] = {}
    for contract, providers in _by_contract(packages).items():
        ordinary = [one.id for one in providers if not is_default(one, contract)]
        if len(providers) > 1 and choices.get(contract) in {one.id for one in providers}:
            found[contract] = choices[contract]
        elif len(providers) > 1 and len(ordinary) == 1:
            found[contract] = ordinary[0]
    return found


def _by_contract(packages: Sequence[Package]) -> dict[str, list[Package]]:
    providers: dict[str, list[Package]] = {}
    for package in packages:
        for contract in package.provides:
            providers.setdefault(contract, []).append(package)
    return providers


def _first(providers: Sequence[Package], contract: str, choices: Mapping[str, str]) -> str:
    """The chosen one, else the first ordinary one, else the first."""
    chosen = [package.id for package in providers if choices.get(contract) == package.id]
    ordinary = [package.id for package in providers if not is_default(package, contract)]
    return [*chosen, *ordinary, providers[0].id][0]
