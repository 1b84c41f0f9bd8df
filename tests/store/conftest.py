"""Every test of the store runs on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from store.engine import Store
from store.migrate import upgrade
from tests.support.postgres import create_database, drop_database, postgres_server

_migrated: dict[str, str] = {}
"""One migrated database per server; copying it costs less than migrating again."""


@pytest.fixture(scope="session")
def postgres_base() -> Iterator[str]:
    with postgres_server() as base:
        yield base


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def empty_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """A database without a table."""
    if dialect == "sqlite":
        yield f"sqlite:///{tmp_path}/new/store.db"
        return
    base = request.getfixturevalue("postgres_base")
    url = await create_database(base)
    yield url
    await drop_database(base, url)


@pytest.fixture
async def url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """A migrated database."""
    if dialect == "sqlite":
        address = f"sqlite:///{tmp_path}/store.db"
        await upgrade(address)
        yield address
        return
    base = request.getfixturevalue("postgres_base")
    if base not in _migrated:
        _migrated[base] = await create_database(base)
        await upgrade(_migrated[base])
    address = await create_database(base, template=_migrated[base])
    yield address
    await drop_database(base, address)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    opened = await Store.open(url)
    yield opened
    await opened.close()
