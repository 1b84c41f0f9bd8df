"""What a configuration changes in a session: judged outside any transaction, then written as columns.

Packages are chosen by `kernel.catalog.activate`; here it is given what there is, what may run and what is
switched off, and what it chose is loaded and stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.catalog import Catalog, Source
from kernel.catalog import Activation, Problem, activate
from kernel.catalog.settings import checked, joined
from kernel.errors import Code, TurnwrightError
from kernel.manifest import Package
from kernel.wire.base import outline
from kernel.wire.session import Configure, Notice
from store import switches
from store.engine import Store
from store.sessions import Session

_MOST_NOTICES = 7


@dataclass(frozen=True)
class Changes:
    """A configuration that can be put in force.

    Attributes:
        columns: of the session's record.
        notices: what a person should know of it: packages that were asked for and are not active.
    """

    columns: dict[str, Any]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class _Wanted:
    """What a session asks for as a whole."""

    packages: list[str] | None
    excluded: list[str]
    choices: dict[str, str]

    @classmethod
    def of(cls, session: Session | None, configure: Configure) -> _Wanted:
        before = (session.packages, session.excluded, session.choices) if session else (None, [], {})
        packages, excluded, choices = before
        chosen = {**choices, **(configure.providers or {})}
        return cls(
            packages if configure.packages is None else list(configure.packages),
            list(excluded if configure.excluded is None else configure.excluded),
            {contract: name for contract, name in chosen.items() if name is not None},
        )


class Configuring:
    """Judges configurations.

    Args:
        slots: names of the configured model slots.
    """

    def __init__(self, store: Store, catalog: Catalog, slots: Collection[str]) -> None:
        self._store = store
        self._catalog = catalog
        self._slots = frozenset(slots)

    async def changes(self, session_id: str, session: Session | None, configure: Configure) -> Changes:
        """What the configuration changes.

        Args:
            session: as stored; None for one that is to be created.

        Raises:
            TurnwrightError: why it cannot be put in force; then nothing of it is.
        """
        self._check_bindings(configure.bindings or {})
        columns: dict[str, Any] = {}
        if configure.locale is not None:
            columns["locale"] = configure.locale
        if configure.bindings is not None:
            columns["bindings"] = {**(session.bindings if session else {}), **configure.bindings}
        notices: tuple[Notice, ...] = ()
        if session is None or _is_about_packages(configure):
            await self._check_exclusions(session, configure)
            chosen = await self.choose(session_id, session, configure)
            columns |= chosen.columns
            notices = chosen.notices
        if configure.settings:
            active = columns.get("active", session.active if session else [])
            columns["settings"] = await self._settings(session, active, configure.settings)
        return Changes(columns, notices)

    async def choose(
        self,
        session_id: str,
        session: Session | None,
        configure: Configure,
        sources: Mapping[str, Source] | None = None,
    ) -> Changes:
        """Choose, load and store the packages of a session.

        Args:
            sources: every package there is; what the folders hold now when left out.

        Raises:
            TurnwrightError: what keeps a set of packages from being active, or one from being loaded.
        """
        wanted, held = _Wanted.of(session, configure), _held(session)
        sources = await self._catalog.sources() if sources is None else sources
        async with self._store.read() as conn:
            disabled = await switches.disabled(conn) - held
        requested = wanted.packages
        if requested is None:
            requested = [name for name in self._catalog.bundled_ids() if name not in disabled]
        named = {*requested, *wanted.choices.values()} - set(wanted.excluded)
        await self._refuse_broken(sources, sorted(named))
        activation = activate(
            requested,
            {name: source.package for name, source in sources.items()},
            approved=await self._approved(session_id, sources),
            excluded=wanted.excluded,
            choices=wanted.choices,
            disabled=disabled,
        ).require()
        return await self._stored(session_id, session, wanted, activation, sources)

    async def may_load(self, source: Source) -> bool:
        """Whether a package's code may run before a session asks for it: somebody approved it."""
        return bool(await self._catalog.approved([source], None))

    async def _approved(self, session_id: str, sources: Mapping[str, Source]) -> frozenset[str]:
        """Ids of the packages whose code may run in a session."""
        approved = await self._catalog.approved(sources.values(), session_id)
        return frozenset(name for name, source in sources.items() if source.digest in approved)

    async def _stored(
        self,
        session_id: str,
        session: Session | None,
        wanted: _Wanted,
        activation: Activation,
        sources: Mapping[str, Source],
    ) -> Changes:
        active = []
        for one in activation.active:
            source = sources[one.package.id]
            await self._catalog.try_code(source)
            active.append({**await self._catalog.freeze(source, session_id), "reason": one.reason})
        running = {one.package.id for one in activation.active}
        told = {(entry["package_id"], entry["code"]) for entry in session.inactive} if session else set()
        news = [one for one in activation.problems if (one.package_id, one.code) not in told]
        columns = {
            "packages": wanted.packages,
            "excluded": wanted.excluded,
            "choices": wanted.choices,
            "active": active,
            "inactive": [_entry(one) for one in activation.problems if one.package_id not in running],
        }
        return Changes(columns, _notices(news))

    async def _refuse_broken(self, sources: Mapping[str, Source], names: Sequence[str]) -> None:
        for name in names:
            if name not in sources and (problems := await asyncio.to_thread(self._catalog.diagnose, name)):
                raise TurnwrightError(Code.PACKAGE_INVALID, problems, where=name)

    async def _check_exclusions(self, session: Session | None, configure: Configure) -> None:
        """Refuse the name of a package that nobody knows; one that the session had may be gone since."""
        had = {*_held(session), *(session.excluded if session else ())}
        names = set(configure.excluded or ()) - had
        sources = await self._catalog.sources() if names else {}
        for name in sorted(names - set(sources)):
            if not await asyncio.to_thread(self._catalog.diagnose, name):
                raise TurnwrightError(
                    Code.PACKAGE_UNKNOWN, f"no package {name!r} is known", accepted=", ".join(sorted(sources))
                )

    def _check_bindings(self, bindings: Mapping[str, str]) -> None:
        if unknown := sorted(set(bindings.values()) - self._slots):
            raise TurnwrightError(
                Code.MODEL_UNCONFIGURED, f"no slot {unknown[0]!r}", accepted=", ".join(sorted(self._slots))
            )

    async def _settings(
        self,
        session: Session | None,
        active: Sequence[Mapping[str, str]],
        changes: Mapping[str, Mapping[str, Any]],
    ) -> dict[str, dict[str, Any]]:
        before = session.settings if session else {}
        digests = {entry["package_id"]: entry["digest"] for entry in active}
        for name, values in changes.items():
            fresh = {key: value for key, value in values.items() if key not in before.get(name, {})}
            set_ = {key: value for key, value in values.items() if value is not None}
            if not {**fresh, **set_}:
                continue  # values are taken back, which needs no declaration any more
            if name not in digests:
                accepted = ", ".join(sorted(digests))
                raise TurnwrightError(
                    Code.SETTING_UNKNOWN, f"package {name!r} is not active", accepted=accepted
                )
            package = (await self._catalog.live(name, digests[name])).package
            self._check_settings(package, {**fresh, **set_})
        return joined(before, changes)

    def _check_settings(self, package: Package, values: Mapping[str, Any]) -> None:
        for key, value in sorted(values.items()):
            checked(package, key, value, self._slots)


def _is_about_packages(configure: Configure) -> bool:
    return any(field is not None for field in (configure.packages, configure.excluded, configure.providers))


def _held(session: Session | None) -> frozenset[str]:
    """Packages that the session has: switching one off keeps it from new choices alone."""
    return frozenset(entry["package_id"] for entry in session.active) if session else frozenset()


def _notices(news: Sequence[Problem]) -> tuple[Notice, ...]:
    """A notice for each problem; of many only the first, so that a session keeps others beside them."""
    told = [Notice(code=problem.code, message=outline(problem.account)) for problem in news[:_MOST_NOTICES]]
    if more := len(news) - len(told):
        message = f"{more} further packages are not active; `turnwright session packages` lists them"
        told.append(Notice(code=news[_MOST_NOTICES].code, message=message))
    return tuple(told)


def _entry(problem: Problem) -> dict[str, str]:
    return {"package_id": problem.package_id, "code": problem.code, "message": problem.account}
