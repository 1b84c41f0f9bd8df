"""What a session asks for and what it has: its packages with reasons, and the words that change them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json
from link.bundled import bundled
from store.package_folders import packages_in
from store.sessions import Session


@dataclass(frozen=True)
class SessionPackages:
    """The packages of a session.

    Attributes:
        requested: ids asked for; of a session that named none, every bundled one.
        excluded: ids that it will not have.
        providers: contract → package that it chose.
        active: what its next turn runs, each `{package_id, digest, version, reason}`.
        inactive: what was asked for and is not active, each `{package_id, code, message}`.
        settings: package → key → value that was set.
    """

    requested: tuple[str, ...]
    excluded: tuple[str, ...]
    providers: dict[str, str]
    active: tuple[dict[str, str], ...]
    inactive: tuple[dict[str, str], ...]
    settings: dict[str, dict[str, Any]]


def bundled_ids() -> tuple[str, ...]:
    """Ids of the packages that come with this installation."""
    return tuple(folder.name for folder in packages_in(bundled("plugins")))


def packages_of(session: Session) -> SessionPackages:
    """The packages of a stored session."""
    return SessionPackages(
        requested=bundled_ids() if session.packages is None else tuple(session.packages),
        excluded=tuple(session.excluded),
        providers=session.choices,
        active=tuple(session.active),
        inactive=tuple(session.inactive),
        settings=session.settings,
    )


def changed(
    known: SessionPackages,
    *,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    exclude: Sequence[str] = (),
    providers: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """Fields of `configure` that make these changes; what is added is no longer excluded.

    Raises:
        TurnwrightError: `package.unknown` for one to be removed that was not asked for.
    """
    for name in remove:
        if name not in known.requested:
            raise TurnwrightError(
                Code.PACKAGE_UNKNOWN,
                f"package {name!r} was not asked for",
                accepted=f"{', '.join(known.requested)}; --exclude keeps any package out",
            )
    fields: dict[str, Any] = {"providers": dict(providers)} if providers else {}
    if add or remove:
        kept = [name for name in known.requested if name not in remove]
        fields["packages"] = list(dict.fromkeys([*kept, *add]))
    if exclude or set(add) & set(known.excluded):
        kept = [name for name in known.excluded if name not in add]
        fields["excluded"] = list(dict.fromkeys([*kept, *exclude]))
    return fields


def provider(text: str) -> tuple[str, str | None]:
    """`CONTRACT=PACKAGE`; without a package the choice is taken back.

    Raises:
        TurnwrightError: `config.invalid`.
    """
    contract, mark, name = text.partition("=")
    if not mark or not contract:
        raise TurnwrightError(
            Code.CONFIG_INVALID, f"--provider {text!r} cannot be read", accepted="CONTRACT=PACKAGE"
        )
    return contract, name or None


def settings(words: Sequence[str]) -> dict[str, dict[str, Json]]:
    """`PACKAGE.KEY=VALUE` of each word: VALUE is JSON, or text where it is none; null takes a value back.

    Raises:
        TurnwrightError: `config.invalid`.
    """
    found: dict[str, dict[str, Json]] = {}
    for word in words:
        place, mark, text = word.partition("=")
        package, dot, key = place.partition(".")
        if not (mark and dot and package and key):
            raise TurnwrightError(
                Code.CONFIG_INVALID, f"{word!r} cannot be read", accepted="PACKAGE.KEY=VALUE"
            )
        found.setdefault(package, {})[key] = _value(text)
    return found


def _value(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
