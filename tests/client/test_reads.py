"""What a client reads from the store, against a real one; no worker is needed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.cli import app
from store import migrate, sessions
from store.engine import Store
from tests.support.temporal import link_settings

pytestmark = pytest.mark.slow


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Settings of a store that knows one session, `tale`, of which nothing is to be told."""
    settings = link_settings(tmp_path)

    async def fill() -> None:
        await migrate.upgrade(settings.store_url)
        store = await Store.open(settings.store_url)
        async with store.write() as conn:
            await sessions.create(conn, session_id="tale", incarnation="i")
        await store.close()

    asyncio.run(fill())
    return settings.to_env()


@pytest.mark.parametrize("command", [["inbox"], ["jobs", "list"]], ids=" ".join)
@pytest.mark.parametrize(
    ("session", "status", "code"),
    [("tale", 0, ""), ("tail", 4, "session.unknown"), ("x" * 201, 3, "session.id-invalid")],
)
def test_a_list_of_a_session_that_is_not_there_is_no_empty_list(
    environ: dict[str, str], command: list[str], session: str, status: int, code: str
) -> None:
    answer = CliRunner().invoke(app, [*command, "--session", session, "--json"], env=environ)
    assert answer.exit_code == status
    shown = json.loads(answer.stdout)
    assert (shown["error"]["code"] if code else shown) == (code or [])
