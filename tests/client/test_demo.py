"""`turnwright demo`, as a person runs it: the whole show, what it keeps, and a show that breaks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from client.processes import ROOT

pytestmark = pytest.mark.slow


PATIENCE_S = 60.0


def environment(home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a person whose settings are these alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNWRIGHT_")}
    return {**kept, "PYTHONPATH": str(ROOT), "TURNWRIGHT_HOME": str(home / "home"), **environ}


def turnwright(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "client.cli", *words],
        cwd=home,
        env=environment(home, environ),
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def of_home(home: Path) -> Iterator[tuple[int, str]]:
    """Processes whose command line or environment names this home, with their command lines."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            if str(home).encode() in (entry / "environ").read_bytes() + command:
                yield int(entry.name), command.replace(b"\0", b" ").decode()
        except OSError:
            continue


def left_behind(home: Path) -> list[str]:
    """Command lines of this home's processes."""
    return [command for _, command in of_home(home)]


def until(found: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def test_the_demo_plays_three_turns_and_leaves_nothing_behind(tmp_path: Path) -> None:
    shown = turnwright(tmp_path, "demo")
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
    failed = turnwright(tmp_path, "demo", TURNWRIGHT_STORE="postgresql://nobody@127.0.0.1:9/none")
    assert failed.returncode not in (0, 134, 139)
    assert "store.unreachable" in failed.stderr
    assert left_behind(tmp_path) == []


def test_what_a_demo_keeps_serves_until_the_printed_command_stops_it(tmp_path: Path) -> None:
    shown = turnwright(tmp_path, "demo", "--keep")
    try:
        assert shown.returncode == 0, shown.stdout + shown.stderr
        assert f"TURNWRIGHT_HOME={tmp_path / 'home'} turnwright session list" in shown.stdout
        new = turnwright(tmp_path, "session", "new", "tale", "--package", "chronicle")
        assert (new.returncode, new.stdout) == (0, "session tale is active\n"), new.stderr
        stop = re.search(r"Everything stays up\. Stop it with: (kill \d+)\n", shown.stdout)
        assert stop is not None
        subprocess.run(stop[1].split(), check=True, timeout=PATIENCE_S)
        until(lambda: left_behind(tmp_path) == [])
    finally:
        for pid, _ in of_home(tmp_path):
            os.kill(pid, signal.SIGKILL)


def complaint_when_killed(home: Path, *words: str, sign: str, victim: str) -> str:
    """What a show tells on stderr when one of its processes is killed at a sign of life on stdout."""
    with subprocess.Popen(
        [sys.executable, "-m", "client.cli", *words],
        cwd=home,
        env=environment(home, {"PYTHONUNBUFFERED": "1"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as show:
        assert show.stdout is not None
        assert any(sign in line for line in show.stdout)
        (pid,) = [pid for pid, command in of_home(home) if victim in command]
        os.kill(pid, signal.SIGKILL)
        _, complaint = show.communicate(timeout=PATIENCE_S)
    assert show.returncode == 5
    assert left_behind(home) == []
    return complaint


def test_a_demo_whose_worker_dies_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    complaint = complaint_when_killed(tmp_path, "demo", sign="Turn 1:", victim=" -m worker ")
    assert complaint.startswith("error: worker.start-failed: the worker ended by itself with status -9")


def test_dev_whose_server_dies_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    dev = ("dev", "--offline", "--free-port")
    complaint = complaint_when_killed(
        tmp_path, *dev, sign="Ctrl-C stops everything", victim=" server start-dev "
    )
    ended = "error: server.unreachable: the development server ended by itself with status -9"
    assert complaint.startswith(ended)
