"""The README's tutorial, run as it is printed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"<!-- tutorial: (?P<kind>\w+) ?(?P<path>\S*) -->\n```\w+\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """A marked block of the README: a file to write, commands to run, or a command to leave running."""

    kind: str
    path: str
    body: str


def blocks() -> list[Block]:
    return [Block(m["kind"], m["path"], m["body"]) for m in _BLOCK.finditer((ROOT / "README.md").read_text())]


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment whose `turnwright` is this checkout, with everything it writes below `tmp_path`."""
    command = tmp_path / "bin" / "turnwright"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m client.cli "$@"\n')
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNWRIGHT_")}
    return {**kept, "PATH": f"{command.parent}:{os.environ['PATH']}", "COLUMNS": "200"}


@contextmanager
def left_running(command: str, cwd: Path, env: dict[str, str]) -> Iterator[Path]:
    """Run a command in the background until the block ends; yields its log."""
    log = cwd / "background.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", f"exec env {command}"],
            cwd=cwd,
            env=env,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def until_up(cwd: Path, env: dict[str, str]) -> None:
    """Wait until `doctor` finds nothing wrong."""
    deadline = time.monotonic() + 90
    while subprocess.run(
        ["turnwright", "doctor"], cwd=cwd, env=env, capture_output=True, check=False
    ).returncode:
        assert time.monotonic() < deadline, "the server and the worker did not come up"


@pytest.mark.slow
def test_the_tutorial_runs_as_printed(tmp_path: Path, shell: dict[str, str]) -> None:
    found = blocks()
    assert [block.kind for block in found] == ["file", "file", "file", "run", "file", "background", "run"]
    for block in (block for block in found if block.kind == "file"):
        file = tmp_path / block.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.body)

    def run(commands: str) -> str:
        script = ["bash", "-euo", "pipefail", "-c", commands]
        done = subprocess.run(script, cwd=tmp_path, env=shell, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    checked = run(f"({found[3].body.strip()}) 2>&1")
    assert "✓ Static package validation" in checked
    assert "advice" not in checked
    with left_running(found[5].body.strip(), tmp_path, shell):
        until_up(tmp_path, shell)
        assert "committed" in run(found[6].body)
        turn_id = json.loads(run("turnwright session show first --json"))["last_turn"]["turn_id"]
        assert "omens" in run(f"turnwright turn show {turn_id}")
