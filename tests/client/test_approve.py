"""`turnwright package approve` and `revoke`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client.cli import app
from link.bundled import bundled
from store.migrate import upgrade
from tests.support.packages import function
from tests.support.rig import write_packages


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TURNWRIGHT_PACKAGES", str(tmp_path / "packages"))
    write_packages(tmp_path / "packages", {"omens": function("return {}")})
    asyncio.run(upgrade(f"sqlite:///{tmp_path}/home/turnwright.db"))
    return tmp_path


def typed(*words: str) -> Any:
    return CliRunner().invoke(app, ["package", *words])


@pytest.mark.parametrize("named", ["omens", "packages/omens", "packages/omens/PLUGIN.md"])
def test_a_package_is_named_by_its_id_its_folder_or_its_manifest(named: str) -> None:
    answer = typed("approve", named, "--json")
    found = json.loads(answer.stdout)
    assert (answer.exit_code, found["package_id"], found["session_id"]) == (0, "omens", "")
    assert found["digest"].startswith("sha256:")


def test_an_approval_is_told_and_taken_back() -> None:
    assert "approved omens for session s1: sha256:" in typed("approve", "omens", "--session", "s1").stdout
    assert "approved omens for every session: whatever" in typed("approve", "omens", "--follow").stdout
    assert typed("revoke", "omens").stdout == "revoked omens: 2 approvals ended\n"
    again = typed("revoke", "omens")
    assert again.exit_code == 3
    assert "package.approval-required: package 'omens' has no approval" in again.stderr


def test_what_cannot_run_is_not_approved(home: Path) -> None:
    unknown = typed("approve", "nothing")
    assert unknown.exit_code == 4
    assert "(accepted: chronicle, dice, fact-index, omens)" in unknown.stderr
    (home / "packages/omens/handler.py").unlink()
    broken = typed("approve", "omens")
    assert broken.exit_code == 3
    assert "package.invalid" in broken.stderr
    ours = typed("approve", str(bundled("plugins") / "dice"))
    assert "dice is bundled and needs no approval" in ours.stderr


def test_doctor_names_the_level_of_isolation() -> None:
    answer = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    (found,) = [one for one in answer["findings"] if one["subject"] == "isolation"]
    level = found["message"].split("runs ")[1].split(";")[0]
    assert found["state"] == ("ok" if level == "sealed" else "note")
