"""Crashes are played on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.migrate import upgrade
from tests.support.postgres import create_database, drop_database, postgres_server


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """A migrated database that several processes use."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path}/store.db"
        await upgrade(address)
        yield address
        return
    with postgres_server() as base:
        address = await create_database(base)
        await upgrade(address)
        yield address
        await drop_database(base, address)
