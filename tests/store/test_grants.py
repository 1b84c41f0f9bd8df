"""Who said that package code may run, and which packages are switched off."""

from __future__ import annotations

from pathlib import Path

from store import grants, switches
from store.engine import Store

ONE = {"subject": "sha256:1", "package_id": "omens"}


async def in_force(store: Store, session_id: str | None, *subjects: str) -> set[str]:
    async with store.read() as conn:
        return set(await grants.in_force(conn, subjects, session_id))


async def test_a_grant_for_all_sessions_holds_in_each(store: Store) -> None:
    async with store.write() as conn:
        await grants.give(conn, **ONE, granted_by="mara")
    assert await in_force(store, "s1", "sha256:1", "sha256:2") == {"sha256:1"}
    async with store.read() as conn:
        (found,) = await grants.list_all(conn, package_id="omens")
    assert (found.session_id, found.granted_by, found.folder) == (grants.EVERYWHERE, "mara", None)


async def test_a_grant_of_one_session_holds_there_alone(store: Store) -> None:
    async with store.write() as conn:
        await grants.give(conn, **ONE, session_id="s1")
    assert await in_force(store, "s1", "sha256:1") == {"sha256:1"}
    assert await in_force(store, "s2", "sha256:1") == set()
    assert await in_force(store, None, "sha256:1") == {"sha256:1"}


async def test_what_is_revoked_can_be_granted_again_by_a_person_alone(store: Store) -> None:
    async with store.write() as conn:
        await grants.give(conn, **ONE)
        assert await grants.revoke(conn, "omens") == 1
        assert await grants.revoke(conn, "omens") == 0
        await grants.give_once(conn, **ONE, granted_by="the product")
    assert await in_force(store, "s1", "sha256:1") == set()
    async with store.write() as conn:
        await grants.give(conn, **ONE)
    assert await in_force(store, "s1", "sha256:1") == {"sha256:1"}


async def test_one_sessions_revocation_leaves_the_others(store: Store) -> None:
    async with store.write() as conn:
        for session_id in ("s1", "s2"):
            await grants.give(conn, **ONE, session_id=session_id)
        assert await grants.revoke(conn, "omens", session_id="s1") == 1
    assert [await in_force(store, name, "sha256:1") for name in ("s1", "s2")] == [set(), {"sha256:1"}]


async def test_a_followed_folder_is_a_subject_of_its_own(store: Store, tmp_path: Path) -> None:
    subject = grants.followed(tmp_path)
    async with store.write() as conn:
        await grants.give(conn, subject=subject, package_id="omens")
        (found,) = await grants.list_all(conn)
    assert found.folder == tmp_path
    assert await in_force(store, "s1", "sha256:1", subject) == {subject}


async def test_a_package_is_switched_off_and_on(store: Store) -> None:
    async with store.write() as conn:
        await switches.switch(conn, "omens", enabled=False)
        assert await switches.disabled(conn) == {"omens"}
        await switches.switch(conn, "omens", enabled=True)
        assert await switches.disabled(conn) == set()
