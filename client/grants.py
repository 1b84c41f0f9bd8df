"""Approval of package code: what may run, and for whom. Spec: plugin-model §25; DECISIONS 24b, 25."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from pathlib import Path

from client import installed, validation
from client.validation import Checked
from kernel.errors import Code, TurnwrightError
from kernel.manifest.loaded import invalid
from link.bundled import bundled
from link.settings import Settings
from store import grants
from store.engine import Store


@dataclass(frozen=True)
class Approved:
    """What was approved: the content of a digest, or whatever a folder holds."""

    package_id: str
    digest: str
    folder: str
    session_id: str
    followed: bool


async def approve(settings: Settings, named: str, *, session_id: str | None, follow: bool) -> Approved:
    """Let the code of a package run as it is now, or whatever its folder comes to hold.

    Raises:
        TurnwrightError: `package.unknown`, `package.invalid` with every problem, or what the store refuses.
    """
    folder = installed.find(settings, named)
    checked = validation.check(folder)
    _refuse_unfit(folder, checked)
    subject = grants.followed(folder) if follow else checked.digest
    scope = session_id or grants.EVERYWHERE
    store = await Store.open(settings.store_url)
    try:
        async with store.write() as conn:
            await grants.give(
                conn, subject=subject, package_id=checked.package_id, session_id=scope, granted_by=_person()
            )
    finally:
        await store.close()
    return Approved(checked.package_id, checked.digest, str(folder), scope, follow)


async def revoke(settings: Settings, package_id: str, *, session_id: str | None) -> int:
    """Take the approval of a package back; what of it runs may finish, nothing more starts.

    Raises:
        TurnwrightError: `package.approval-required` when there is nothing to take back.
    """
    store = await Store.open(settings.store_url)
    try:
        async with store.write() as conn:
            ended = await grants.revoke(conn, package_id, session_id=session_id)
            known = await grants.list_all(conn, package_id=package_id)
    finally:
        await store.close()
    if not ended:
        scopes = sorted({one.session_id or "every session" for one in known if one.revoked_at is None})
        raise TurnwrightError(
            Code.PACKAGE_APPROVAL,
            f"package {package_id!r} has no approval" + (f" for session {session_id}" if session_id else ""),
            accepted=f"an approval that is in force: for {', '.join(scopes)}" if scopes else "",
        )
    return ended


def _refuse_unfit(folder: Path, checked: Checked) -> None:
    if checked.errors:
        raise invalid(checked.errors, str(folder))
    if folder.resolve().parent == bundled("plugins").resolve():
        message = f"{checked.package_id} is bundled and needs no approval"
        raise TurnwrightError(Code.PACKAGE_APPROVAL, message, accepted="a package that is not bundled")


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
