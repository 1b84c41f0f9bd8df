"""The packages of an installation: which there are, and which of them new choices may take."""

from __future__ import annotations

from dataclasses import dataclass

from client import validation
from client.installed import Origin, folders, roots
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
        origin: `bundled` with the product, in a `folder` of `packages.path`, or `installed`.
        enabled: whether new choices may take it.
        problem: why it cannot be played; empty when it can.
    """

    package_id: str
    version: str
    origin: Origin
    folder: str
    enabled: bool
    problem: str


async def known(settings: Settings) -> list[Known]:
    """Every package folder, by id; of several of one id the first that can be loaded counts."""
    disabled = await _disabled(settings)
    found: dict[str, list[Known]] = {}
    for origin, root in roots(settings):
        for folder in package_folders.packages_in(root):
            checked = validation.check(folder)
            same = found.setdefault(checked.package_id, [])
            first = next((one.folder for one in same if not one.problem), "")
            problem = f"{first} has the same id and counts" if first else _problem(checked)
            enabled = checked.package_id not in disabled
            same.append(Known(checked.package_id, checked.version, origin, str(folder), enabled, problem))
    return [one for name in sorted(found) for one in found[name]]


async def switch(settings: Settings, package_id: str, *, enabled: bool) -> None:
    """Let new choices take a package, or not; sessions that have it keep it.

    Raises:
        TurnwrightError: `package.unknown`, or what opening the store refuses.
    """
    store = await Store.open(settings.store_url)
    try:
        async with store.write() as conn:
            names = {*folders(settings), *await switches.disabled(conn)}
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
