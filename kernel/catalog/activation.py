"""Which packages of a session are active, and why.

    activate      what is asked for and what there is → what runs, each with its reason
    Activation    the answer: active packages, and every problem

Pure and total: a problem is part of the answer, and whoever must not go on with it calls `require`.
Spec: plugin-model §5 (provider choice); DECISIONS 5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kernel.catalog.compatibility import incompatible
from kernel.catalog.problems import Problem
from kernel.catalog.providers import is_default, steps_aside
from kernel.errors import Code, TurnwrightError
from kernel.manifest import Package

REQUESTED = "requested"


@dataclass(frozen=True)
class Active:
    """An active package. `reason`: `requested`, or which contract it provides, and for whom."""

    package: Package
    reason: str


@dataclass(frozen=True)
class Activation:
    """The answer.

    Attributes:
        active: by id; closed under `requires`, without any excluded package.
        problems: in the order of the rules; those that block keep the session from being created.
        asked: the packages that the session named itself, in its order.
    """

    active: tuple[Active, ...]
    problems: tuple[Problem, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[Package, ...]:
        """The active packages, by id."""
        return tuple(one.package for one in self.active)

    @property
    def inactive(self) -> tuple[Problem, ...]:
        """Why each package that was asked for is not active."""
        running = {one.package.id for one in self.active}
        found: dict[str, Problem] = {}
        for problem in self.problems:
            if problem.package_id in self.asked and problem.package_id not in running:
                found.setdefault(problem.package_id, problem)
        return tuple(found[name] for name in sorted(found))

    def require(self) -> Activation:
        """This answer, if a session can go on with it.

        Raises:
            TurnwrightError: the code of the first problem that blocks; the message lists every one.
        """
        if blocking := [problem for problem in self.problems if problem.blocks]:
            message = "; ".join(problem.message for problem in blocking)
            raise TurnwrightError(blocking[0].code, message, accepted=blocking[0].accepted)
        return self


def activate(
    requested: Sequence[str],
    available: Mapping[str, Package],
    *,
    approved: Collection[str],
    excluded: Collection[str] = (),
    choices: Mapping[str, str] | None = None,
    disabled: Collection[str] = (),
) -> Activation:
    """Choose the active packages. The order of `available` changes nothing.

    Args:
        requested: package ids that the session asks for; their order settles who declares an event topic.
        available: every package that can be loaded, by id.
        approved: ids whose code may run; the bundled ones among them.
        excluded: ids that the session will not have, whoever needs them; this beats everything.
        choices: contract → the package that answers for it; it is active like a requested one.
        disabled: ids that are switched off: no new choice takes them.
    """
    choosing = _Choosing(requested, available, approved, excluded, choices or {}, disabled)
    choosing.start()
    choosing.close()
    choosing.settle_topics()
    choosing.step_aside()
    return choosing.answer()


@dataclass
class _Choosing:
    """The rules in the order of the specification; `active` is the set so far, with reasons."""

    requested: Sequence[str]
    available: Mapping[str, Package]
    approved: Collection[str]
    excluded: Collection[str]
    choices: Mapping[str, str]
    disabled: Collection[str]
    active: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.approved, self.excluded = frozenset(self.approved), frozenset(self.excluded)
        self.disabled = frozenset(self.disabled)
        self.asked = tuple(dict.fromkeys([*self.requested, *self.choices.values()]))
        self._places = {name: place for place, name in enumerate(self.asked)}
        self._provides = {name: package.provides for name, package in self.available.items()}
        self._providers: dict[str, list[str]] = {}
        for name in sorted(set(self.available) - self.disabled):
            for contract in self._provides[name]:
                self._providers.setdefault(contract, []).append(name)

    def start(self) -> None:
        """What the session names itself: requested packages and chosen providers."""
        for name in sorted(set(self.requested)):
            self._name(name, REQUESTED)
        for contract, name in sorted(self.choices.items()):
            if name in self.available and name not in self._providers.get(contract, ()):
                self._report(
                    name if name not in self.requested else "",
                    Code.ACTIVATION_MISSING_PROVIDER,
                    f"package {name!r} was chosen for {contract} and does not provide it",
                    accepted=", ".join(self._providers.get(contract, ())) or "no package provides it",
                    blocks=True,
                )
            elif name not in self.active and not self._told(name):
                self._name(name, f"chosen as the provider of {contract}")

    def close(self) -> None:
        """Add providers until nothing more can be decided, then drop what cannot have its own."""
        while added := self._added():
            self.active.update(added)
        for name, contract in self._unmet():
            self._report_unmet(name, contract)
        self._prune()

    def settle_topics(self) -> None:
        """One declarer for each event topic: requested ones first, in their order."""
        owners: dict[str, str] = {}
        for name in sorted(self.active, key=self._rank):
            topics = [event.topic for event in self.available[name].manifest.contributes.events]
            taken = next((topic for topic in topics if topic in owners), None)
            if taken is None:
                owners.update(dict.fromkeys(topics, name))
                continue
            message = f"packages {owners[taken]!r} and {name!r} both declare the event {taken}"
            self._drop(name, Code.ACTIVATION_EVENT_TOPIC, message, accepted="one declarer of a topic")
        self._prune()

    def step_aside(self) -> None:
        """Default providers leave when another one of their contracts is active."""
        ranked = [self.available[name] for name in sorted(self.active, key=self._rank)]
        for package_id, contract, other in steps_aside(ranked, self.choices):
            message = f"package {package_id!r}, a default provider of {contract}, steps aside for {other!r}"
            self._drop(package_id, Code.ACTIVATION_STEPPED_ASIDE, message)
        self._prune()

    def answer(self) -> Activation:
        """What stays, judged as a whole."""
        active = tuple(Active(self.available[name], self.active[name]) for name in sorted(self.active))
        packages = [one.package for one in active]
        return Activation(active, (*self.problems, *incompatible(packages, self.choices)), self.asked)

    def _name(self, name: str, reason: str) -> None:
        if name in self.excluded:
            self._report(name, Code.ACTIVATION_EXCLUDED, f"package {name!r} is excluded")
        elif name not in self.available:
            accepted = ", ".join(sorted(self.available))
            self._report(name, Code.PACKAGE_UNKNOWN, f"no package {name!r} is known", accepted, blocks=True)
        elif name in self.disabled:
            accepted = f"`turnwright package enable {name}`"
            self._report(
                name, Code.PACKAGE_DISABLED, f"package {name!r} is switched off", accepted, blocks=True
            )
        elif name not in self.approved:
            accepted = f"`turnwright package approve {name}`"
            self._report(
                name, Code.PACKAGE_APPROVAL, f"package {name!r} waits for approval of its code", accepted
            )
        else:
            self.active[name] = reason

    def _added(self) -> dict[str, str]:
        """What the requirements that stand open now bring in, all of them judged on the same set."""
        added: dict[str, str] = {}
        for name, contract in self._unmet():
            if (found := self._provider(contract)) is not None:
                kind = "default" if is_default(self.available[found], contract) else "sole"
                added.setdefault(found, f"{kind} provider of {contract}, which {name} requires")
        return added

    def _unmet(self) -> list[tuple[str, str]]:
        provided = {contract for name in self.active for contract in self._provides[name]}
        return [
            (name, contract)
            for name in sorted(self.active)
            for contract in self.available[name].manifest.requires
            if contract not in provided
        ]

    def _provider(self, contract: str) -> str | None:
        """The sole ordinary provider that may run, else the sole default one."""
        if contract in self.choices:  # and still unmet: the chosen one is not active, and no other will do
            return None
        may_run = self._may_run(contract)
        default = [name for name in may_run if is_default(self.available[name], contract)]
        ordinary = [name for name in may_run if name not in default]
        return next((group[0] for group in (ordinary, default) if len(group) == 1), None)

    def _may_run(self, contract: str) -> list[str]:
        known = self._providers.get(contract, ())
        return [name for name in known if name not in self.excluded and name in self.approved]

    def _report_unmet(self, name: str, contract: str) -> None:
        known, needs = self._providers.get(contract, []), f"package {name!r} requires {contract}"
        chosen = self.choices.get(contract)
        if chosen is not None:
            cause = next((one for one in self.problems if one.package_id == chosen), None)
            code = cause.code if cause else Code.ACTIVATION_MISSING_PROVIDER
            self._report(name, code, f"{needs}, and the chosen provider {chosen!r} is not active")
        elif may_run := self._may_run(contract):
            message = f"{needs}, which several packages provide: {', '.join(may_run)}"
            self._report(name, Code.ACTIVATION_AMBIGUOUS_PROVIDER, message, "the choice of one", blocks=True)
        elif waiting := [other for other in known if other not in self.excluded]:
            message = f"{needs}, and {', '.join(waiting)} waits for approval of its code"
            accepted = f"`turnwright package approve {waiting[0]}`"
            self._report(name, Code.PACKAGE_APPROVAL, message, accepted)
        elif known:
            self._report(
                name, Code.ACTIVATION_EXCLUDED, f"{needs}, and its provider {known[0]!r} is excluded"
            )
        else:
            message = f"{needs}, which no active package provides"
            accepted = f"a package that provides {contract}"
            self._report(name, Code.ACTIVATION_MISSING_PROVIDER, message, accepted, blocks=True)

    def _prune(self) -> None:
        """Remove packages whose provider vanished, then additions that nobody needs any more."""
        while unmet := self._unmet():
            for name, contract in unmet:
                cause = self._cause(contract)
                message = f"package {name!r} requires {contract}, whose provider is not active"
                self._drop(name, cause, message)
        needed = self.active.keys() & self._places.keys()
        fresh = needed
        while fresh:
            contracts = {c for name in fresh for c in self.available[name].manifest.requires}
            fresh = {n for n in self.active if not contracts.isdisjoint(self._provides[n])} - needed
            needed = needed | fresh
        self.active = {name: reason for name, reason in self.active.items() if name in needed}

    def _cause(self, contract: str) -> Code:
        """The code of what took the contract's provider away."""
        known = set(self._providers.get(contract, ()))
        lost = next((problem for problem in self.problems if problem.package_id in known), None)
        return lost.code if lost else Code.ACTIVATION_MISSING_PROVIDER

    def _drop(self, name: str, code: Code, message: str, accepted: str = "") -> None:
        """Take a package out; one that has its reason already is not told of twice."""
        if self.active.pop(name, None) is not None and not self._told(name):
            self._report(name, code, message, accepted)

    def _told(self, name: str) -> bool:
        return any(problem.package_id == name for problem in self.problems)

    def _report(
        self, name: str, code: Code, message: str, accepted: str = "", *, blocks: bool = False
    ) -> None:
        self.problems.append(Problem(code, message, accepted, name, blocks))

    def _rank(self, name: str) -> tuple[int, str]:
        """Requested ones in their order, then chosen ones, then additions by id."""
        return self._places.get(name, len(self._places)), name
