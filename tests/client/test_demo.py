"""`turnwright demo`, as a person runs it: the whole show, and a show that cannot begin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from client.processes import ROOT

pytestmark = pytest.mark.slow


def demo(home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNWRIGHT_")}
    return subprocess.run(
        [sys.executable, "-m", "client.cli", "demo"],
        cwd=home,
        env={**kept, "PYTHONPATH": str(ROOT), "TURNWRIGHT_HOME": str(home / "home"), **environ},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def left_behind(home: Path) -> list[str]:
    """Processes whose command line or environment names this home."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(home).encode() in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_the_demo_plays_three_turns_and_leaves_nothing_behind(tmp_path: Path) -> None:
    shown = demo(tmp_path)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    told = (
        "Temporal UI",
        "Turn 3",
        "✓ dice",
        "calls mark-milestone",
        "answered by the signal `resolve`",
        "job fact-index/digest settled",
        "committed:",
        "USD",
        "offline",
    )
    assert [words for words in told if words not in shown.stdout] == []
    assert left_behind(tmp_path) == []


def test_a_demo_that_cannot_begin_says_why_and_leaves_nothing_behind(tmp_path: Path) -> None:
    failed = demo(tmp_path, TURNWRIGHT_STORE="postgresql://nobody@127.0.0.1:9/none")
    assert failed.returncode not in (0, 134, 139)
    assert "store.unreachable" in failed.stderr
    assert left_behind(tmp_path) == []
