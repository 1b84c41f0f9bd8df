from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

import store.migrations
from kernel.errors import Code, TurnwrightError
from store.address import parse, sqlite_file
from store.engine import HEAD, Store
from store.migrate import configuration, current, upgrade
from store.tables import metadata
from tests.store.processes import run_python


async def test_an_empty_database_is_brought_to_head(empty_url: str, capfd) -> None:
    assert await upgrade(empty_url) == HEAD
    assert await current(empty_url) == HEAD
    assert await upgrade(empty_url) == HEAD
    await (await Store.open(empty_url)).close()
    assert capfd.readouterr() == ("", "")


async def test_processes_that_migrate_at_once_all_succeed(empty_url: str) -> None:
    code = "import asyncio, sys; from store.migrate import upgrade; asyncio.run(upgrade(sys.argv[1]))"
    assert await asyncio.gather(*(run_python(code, empty_url) for _ in range(4))) == [0] * 4
    assert await current(empty_url) == HEAD


async def test_a_database_of_the_first_schema_is_brought_to_head(empty_url: str) -> None:
    file = sqlite_file(parse(empty_url))
    if file is not None:
        file.parent.mkdir()
        file.touch()
    first = await Store.open(empty_url, check=False)
    async with first.write() as conn:
        await conn.run_sync(lambda connection: command.upgrade(configuration(connection), "0001"))
    await first.close()
    assert await current(empty_url) == "0001"
    assert await upgrade(empty_url) == HEAD
    opened = await Store.open(empty_url)
    async with opened.read() as conn:
        assert await conn.run_sync(_differences) == []
    await opened.close()


async def test_migrations_and_tables_agree(store: Store) -> None:
    async with store.read() as conn:
        assert await conn.run_sync(_differences) == []


def _differences(connection) -> list[object]:
    return compare_metadata(MigrationContext.configure(connection), metadata)


async def test_a_database_of_a_later_version_is_refused(store: Store, url: str) -> None:
    async with store.write() as conn:
        await conn.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for attempt in (upgrade(url), Store.open(url)):
        with pytest.raises(TurnwrightError) as refusal:
            await attempt
        assert refusal.value.code == Code.STORE_NOT_MIGRATED
        assert "9999" in str(refusal.value)
        assert HEAD in str(refusal.value)


def test_head_is_the_newest_migration() -> None:
    folder = Path(store.migrations.__path__[0])
    assert ScriptDirectory(str(folder)).get_heads() == [HEAD]
