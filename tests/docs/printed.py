"""What a page prints, done: files are written, commands are run, one is left running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"<!-- tutorial: (?P<kind>\w+) ?(?P<path>\S*) -->\n```\w+\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """A marked block of a page: a file to write, commands to run, or a command to leave running."""

    kind: str
    path: str
    body: str


def blocks(page: str) -> list[Block]:
    """The marked blocks of a page, in order."""
    return [Block(m["kind"], m["path"], m["body"]) for m in _BLOCK.finditer((ROOT / page).read_text())]


@dataclass(frozen=True)
class Reader:
    """Does what a page says, in a folder of its own."""

    cwd: Path
    env: dict[str, str]

    def write(self, block: Block) -> None:
        """Write the file of a block."""
        file = self.cwd / block.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.body)

    def run(self, commands: str) -> str:
        """Run commands, none of which may fail; returns what they printed."""
        script = ["bash", "-euo", "pipefail", "-c", commands]
        done = subprocess.run(script, cwd=self.cwd, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def left_running(self, command: str) -> Iterator[None]:
        """Run a command in the background until the block ends; it is up when the block begins."""
        with (self.cwd / "background.log").open("wb") as output:
            process = subprocess.Popen(
                ["sh", "-c", f"exec env {command}"],
                cwd=self.cwd,
                env=self.env,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            self._until_up()
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise

    def _until_up(self) -> None:
        """Wait until `doctor` finds nothing wrong."""
        deadline = time.monotonic() + 90
        doctor = ["turnwright", "doctor"]
        while subprocess.run(doctor, cwd=self.cwd, env=self.env, capture_output=True, check=False).returncode:
            assert time.monotonic() < deadline, "the server and the worker did not come up"
