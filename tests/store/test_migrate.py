from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

import store.migrations
from kernel.errors import Code, TurnwrightError
from store.engine import HEAD, Store
from store.migrate import upgrade
from store.tables import metadata
from tests.store.processes import run_python


async def test_an_empty_database_is_brought_to_head(empty_url: str, capfd) -> None:
    assert await upgrade(empty_url) == HEAD
    assert await upgrade(empty_url) == HEAD
    await (await Store.open(empty_url)).close()
    assert capfd.readouterr() == ("", "")


async def test_processes_that_migrate_at_once_all_succeed(empty_url: str) -> None:
    code = "import asyncio, sys; from store.migrate import upgrade; asyncio.run(upgrade(sys.argv[1]))"
    assert await asyncio.gather(*(run_python(code, empty_url) for _ in range(4))) == [0] * 4
    await (await Store.open(empty_url)).close()


async def test_migrations_and_tables_agree(store: Store) -> None:
    async with store.read() as conn:
        assert await conn.run_sync(_differences) == []
        assert await conn.run_sync(_keys) == {
            name: [column.name for column in table.primary_key] for name, table in metadata.tables.items()
        }


def _differences(connection) -> list[object]:
    return compare_metadata(MigrationContext.configure(connection), metadata)


def _keys(connection) -> dict[str, list[str]]:
    """The columns of every primary key, which the comparison leaves out."""
    found = inspect(connection)
    return {name: found.get_pk_constraint(name)["constrained_columns"] for name in metadata.tables}


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
