"""What tests of activities share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.engine import Store
from store.migrate import upgrade


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    url = f"sqlite:///{tmp_path}/store.db"
    await upgrade(url)
    opened = await Store.open(url)
    yield opened
    await opened.close()
