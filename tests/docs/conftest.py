"""A reader of the pages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.printed import ROOT, Reader


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """Their `turnwright` is this checkout, and everything it writes is below `tmp_path`."""
    command = tmp_path / "bin" / "turnwright"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m client.cli "$@"\n')
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNWRIGHT_")}
    env = {**kept, "PATH": f"{command.parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    return Reader(tmp_path, env)
