"""The packages of an installation: which there are, and which of them new choices may take."""

from __future__ import annotations

from dataclasses import dataclass

from client import validation
from client.installed import Origin, places, roots
from client.validation import Checked
from kernel.errors import Code, TurnwrightError
from link.settings import Settings
from store import package_folders, switches
from store.address import missing_file, parse
from store.engine import Store


@dataclass(frozen=True)
class Known:
    """A package folder.

    Attributes:
        title: its name for people, empty where it cannot be loaded.
        origin: `bundled` with the product, in a `folder` of `packages.path`, or `installed`.
        enabled: whether new choices may take it.
        problem: why it cannot be played; empty when it can.
    """

    package_id: str
    title: str
    version: str
    origin: Origin
    folder: str
    enabled: bool
    problem: str


async def known(settings: Settings, locale: str = "en") -> list[Known]:
    """Every package folder, by id; titles are in the language, or the nearest."""
    disabled, taken = await _disabled(settings), places(settings)
    found = []
    for origin, root in roots(settings):
        for folder in package_folders.packages_in(root):
            checked = validation.check(folder, locale=locale)
            name = checked.package_id
            others = [str(other) for other in taken[name] if other.resolve() != folder.resolve()]
            problem = f"{', '.join(others)} has the same id: none is played" if others else _problem(checked)
            enabled = name not in disabled
            found.append(Known(name, checked.title, checked.version, origin, str(folder), enabled, problem))
    return sorted(found, key=lambda one: one.package_id)


async def switch(settings: Settings, package_id: str, *, enabled: bool) -> None:
    """Let new choices take a package, or not; sessions that have it keep it.

    Raises:
        TurnwrightError: `package.unknown`, or what opening the store refuses.
    """
    store = await Store.open(settings.store_url)
    try:
        async with store.write() as conn:
            names = {*places(settings), *await switches.disabled(conn)}
            if package_id not in names:
                accepted = ", ".join(sorted(names))
                raise TurnwrightError(
                    Code.PACKAGE_UNKNOWN, f"no package {package_id!r} is known", accepted=accepted
                )
            await switches.switch(conn, package_id, enabled=enabled)
    finally:
        await store.close()


def _problem(checked: Checked) -> str:
    if not checked.errors:
        return ""
    more = len(checked.errors) - 1
    return checked.errors[0].render() + (f", and {more} more" if more else "")


async def _disabled(settings: Settings) -> frozenset[str]:
    if missing_file(parse(settings.store_url)):
        return frozenset()  # nobody has played here yet
    store = await Store.open(settings.store_url)
    try:
        async with store.read() as conn:
            return await switches.disabled(conn)
    finally:
        await store.close()
