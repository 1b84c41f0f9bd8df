from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from kernel.errors import Code, TurnwrightError
from store import interjections, sessions
from store.engine import HEAD, Store, savepoint
from store.migrate import upgrade
from tests.store.processes import run_python


async def add(conn, interjection_id: str) -> None:
    await interjections.add(
        conn, session_id="s", interjection_id=interjection_id, turn_id="t", text="x", now=1.0
    )


async def ids(store: Store) -> list[str]:
    async with store.read() as conn:
        return [found.interjection_id for found in await interjections.list_of_turn(conn, "s", "t")]


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:secret@h/d",
        "postgresql+psycopg://u:secret@h/d",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://u:secret@h",
        "postgresql://u:secret@h/d?nonsense=secret",
        "nonsense secret",
    ],
)
async def test_another_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        await Store.open(url)
    assert refusal.value.code == Code.CONFIG_INVALID
    assert "secret" not in str(refusal.value)


async def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(TurnwrightError) as refusal:
        await Store.open("postgresql://user:secret@127.0.0.1:9/name")
    assert refusal.value.code == Code.STORE_UNREACHABLE
    assert "secret" not in str(refusal.value)
    assert "127.0.0.1:9/name" in str(refusal.value)


@pytest.mark.slow
async def test_a_database_that_does_not_exist_is_unreachable(postgres_base: str) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        await Store.open(postgres_base.replace("/postgres?", "/nowhere?"))
    assert refusal.value.code == Code.STORE_UNREACHABLE
    assert "nowhere" in refusal.value.message


async def test_a_file_that_cannot_be_opened_is_unreachable(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TurnwrightError) as refusal:
        await upgrade(f"sqlite:///{tmp_path}/file/store.db")
    assert refusal.value.code == Code.STORE_UNREACHABLE


async def test_an_empty_database_is_refused_with_both_revisions(empty_url: str) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        await Store.open(empty_url)
    assert refusal.value.code == Code.STORE_NOT_MIGRATED
    assert refusal.value.details == {"current": None, "expected": HEAD}


async def test_a_file_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    file = tmp_path / "gone.db"
    with pytest.raises(TurnwrightError) as refusal:
        await Store.open(f"sqlite:///{file}")
    assert refusal.value.code == Code.STORE_NOT_MIGRATED
    assert refusal.value.message == f"there is no database file {file}"
    assert not file.exists()


async def test_a_write_that_raises_leaves_nothing(store: Store) -> None:
    with suppress(LookupError):
        async with store.write() as conn:
            await add(conn, "a")
            raise LookupError
    assert await ids(store) == []


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(DBAPIError):
        async with store.read() as conn:
            await add(conn, "a")
    assert await ids(store) == []


async def test_a_savepoint_fails_alone(store: Store) -> None:
    async with store.write() as conn:
        await add(conn, "before")
        with suppress(DBAPIError):
            async with savepoint(conn):
                await add(conn, "inside")
                await conn.execute(text("SELECT nonsense FROM nowhere"))
        async with savepoint(conn):
            await add(conn, "outer")
            with suppress(LookupError):
                async with savepoint(conn):
                    await add(conn, "inner")
                    raise LookupError
        await add(conn, "after")
    assert await ids(store) == ["after", "before", "outer"]


async def test_writers_of_one_process_all_get_through(store: Store) -> None:
    async def write(number: int) -> None:
        async with store.write() as conn:
            await add(conn, f"{number:03}")

    await asyncio.gather(*(write(number) for number in range(60)))
    assert len(await ids(store)) == 60


async def test_a_cancelled_writer_frees_the_lock(store: Store) -> None:
    entered = asyncio.Event()

    async def hold() -> None:
        async with store.write() as conn:
            await add(conn, "held")
            entered.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    waiting = asyncio.create_task(hold())
    await asyncio.sleep(0)
    waiting.cancel()
    holder.cancel()
    await asyncio.gather(holder, waiting, return_exceptions=True)
    async with store.write() as conn:
        await add(conn, "next")
    assert await ids(store) == ["next"]


async def test_cancellation_at_any_moment_leaves_the_store_usable(store: Store) -> None:
    async def write(number: int) -> None:
        async with store.write() as conn:
            await add(conn, str(number))

    for number in range(40):
        task = asyncio.create_task(write(number))
        for _ in range(number):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with store.write() as conn:
        await add(conn, "last")
    assert "last" in await ids(store)


async def test_an_error_of_the_database_tells_nothing_of_what_was_written(store: Store) -> None:
    with pytest.raises(DBAPIError) as caught:
        async with store.write() as conn:
            await conn.execute(text("INSERT INTO nowhere VALUES (:said)"), {"said": "a player's words"})
    assert "a player's words" not in str(caught.value)


async def test_a_write_inside_a_write_is_refused_where_it_would_wait_for_itself(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    await upgrade(url)
    store = await Store.open(url)
    with pytest.raises(RuntimeError, match="wait for itself"):
        async with store.write(), store.write():
            pass
    await store.close()


_INCREMENT = """
import asyncio, sys
from store import sessions, state
from store.engine import Store

async def main():
    store = await Store.open(sys.argv[1])
    for _ in range(50):
        async with store.write() as conn:
            await sessions.lock(conn, "s")
            value = await state.get(conn, "s", "counter")
            await state.put(conn, "s", "counter", value=(value.value if value else 0) + 1, turn_id="t")
    await store.close()

asyncio.run(main())
"""


async def test_two_processes_lose_no_update(store: Store, url: str) -> None:
    async with store.write() as conn:
        await sessions.create(conn, session_id="s", incarnation="i")
    assert await asyncio.gather(*(run_python(_INCREMENT, url) for _ in range(2))) == [0, 0]
    async with store.read() as conn:
        row = (await conn.execute(text("SELECT value, version FROM state"))).one()
    assert tuple(row) == ("100", 100)


async def test_a_session_lock_holds_others_of_that_session_back(store: Store) -> None:
    async with store.write() as conn:
        for name in ("one", "two"):
            await sessions.create(conn, session_id=name, incarnation="i")
    order: list[str] = []
    locked = asyncio.Event()
    release = asyncio.Event()

    async def first() -> None:
        async with store.write() as conn:
            await sessions.lock(conn, "one")
            locked.set()
            await release.wait()
            order.append("first")

    async def second() -> None:
        async with store.write() as conn:
            await sessions.lock(conn, "one")
            order.append("second")

    holder = asyncio.create_task(first())
    await locked.wait()
    follower = asyncio.create_task(second())
    if store.dialect == "postgresql":
        async with store.write() as conn:
            await sessions.lock(conn, "two")
            order.append("other session")
    release.set()
    await asyncio.gather(holder, follower)
    assert order[-2:] == ["first", "second"]
    assert ("other session" in order) == (store.dialect == "postgresql")


async def test_sqlite_readers_and_writers_do_not_hold_each_other_up(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    await upgrade(url)
    store = await Store.open(url)
    async with store.read() as before, store.write() as conn:
        assert (await before.execute(text("PRAGMA journal_mode"))).scalar() == "wal"
        assert (await conn.execute(text("PRAGMA synchronous"))).scalar() == 1
        assert await interjections.list_of_turn(before, "s", "t") == []
        await add(conn, "a")
        assert await interjections.list_of_turn(before, "s", "t") == []
    assert await ids(store) == ["a"]
    await store.close()


async def test_a_sqlite_writer_waits_for_another_process_without_stopping_its_own(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    await upgrade(url)
    ours, theirs = await Store.open(url), await Store.open(url)

    async def write() -> None:
        async with ours.write() as conn:
            await add(conn, "a")

    async with theirs.write() as conn:
        await add(conn, "b")
        waiting = asyncio.create_task(write())
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 5)
    assert await ids(ours) == ["a", "b"]
    await ours.close()
    await theirs.close()


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_database_file_that_is_gone_is_written_no_more(
    store: Store, tmp_path: Path, replaced: bool
) -> None:
    file, aside = tmp_path / "store.db", tmp_path / "aside.db"
    async with store.write() as conn:
        await add(conn, "before")
    file.rename(aside)
    if replaced:
        file.touch()
    for _ in range(2):
        with pytest.raises(TurnwrightError) as refusal:
            async with store.write() as conn:
                await add(conn, "lost")
        assert refusal.value.code == Code.STORE_UNREACHABLE
        assert str(file) in str(refusal.value)
        assert "started anew" in refusal.value.accepted
    aside.rename(file)
    async with store.write() as conn:
        await add(conn, "after")
    assert await ids(store) == ["after", "before"]
