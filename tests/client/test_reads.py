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

ACTIVE = [{"package_id": name, "digest": "sha256:old", "version": "1"} for name in ("dice", "omens")]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Settings of a store that knows one session, `tale`: no questions, no jobs, two packages."""
    settings = link_settings(tmp_path)

    async def fill() -> None:
        await migrate.upgrade(settings.store_url)
        store = await Store.open(settings.store_url)
        async with store.write() as conn:
            await sessions.create(conn, session_id="tale", incarnation="i", active=ACTIVE)
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


def test_doctor_tells_which_packages_are_played_and_which_were_edited_since(environ: dict[str, str]) -> None:
    answer = CliRunner().invoke(app, ["doctor", "--json"], env=environ)
    findings = json.loads(answer.stdout)["findings"]
    assert [(one["state"], one["message"]) for one in findings if one["subject"] == "packages played"] == [
        ("ok", "dice (1 session), omens (1 session)"),
        ("note", "dice was edited; stored content goes on for tale"),
        ("note", "omens is in no package folder; stored content goes on for tale"),
    ]
