"""The rules of the house, held in CI: imports, lint, types, pins without addresses, sizes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.errors import Code

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
HOSTS = re.compile(r"https?://|index-url|find-links|\"resolved\"")


def tracked(pattern: str) -> list[Path]:
    """Files that belong to the project; in an export without git, every file of the pattern."""
    listed = subprocess.run(
        ["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if (ROOT / ".git").exists() and listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split()]
    found = (file.relative_to(ROOT) for file in sorted(ROOT.glob(f"**/{pattern}")))
    return [ROOT / file for file in found if not any(part.startswith(".") for part in file.parts)]


def run(*command: str) -> None:
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_arrows_between_the_rooms_hold() -> None:
    run("lint-imports")


def test_everything_is_formatted_and_linted() -> None:
    run("ruff", "format", "--check", ".")
    run("ruff", "check", ".")


@pytest.mark.slow
def test_types_are_strict() -> None:
    run("mypy")


def test_pins_name_versions_and_no_addresses() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^\s]+", line) for line in lines)
    for file in (*tracked("*constraints*"), *tracked("*requirements*"), *tracked("*lock*")):
        assert not HOSTS.search(file.read_text(encoding="utf-8", errors="replace")), file


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs/dependencies.md").read_text()
    declared = re.findall(
        r'^  "([A-Za-z0-9_-]+)[^:]*",$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert declared
    assert [name for name in declared if name not in reasons] == []


def test_no_file_is_longer_than_600_lines() -> None:
    long = {
        str(file.relative_to(ROOT)): lines
        for file in tracked("*.py")
        if (lines := len(file.read_text(encoding="utf-8").splitlines())) > 600
    }
    assert long == {}


def test_the_docs_name_no_code_that_there_is_not() -> None:
    families = {code.partition(".")[0] for code in Code}
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for word in re.findall(r"`([a-z]+\.[a-z][a-z-]*)`", page.read_text()):
            family, _, name = word.partition(".")
            if family in families and name not in ("log", "ts"):  # files
                assert word in set(Code), f"{page.name}: {word}"
