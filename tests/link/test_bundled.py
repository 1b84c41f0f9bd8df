"""The bundled content is found in a checkout and in an installed distribution."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from link import bundled as module
from link.bundled import bundled


@pytest.mark.parametrize("name", ["plugins", "worlds", "deploy", "deploy/dynamic-config.yaml"])
def test_a_checkout_has_its_content_beside_the_rooms(name: str) -> None:
    assert bundled(name) == Path(__file__).parents[2] / name
    assert bundled(name).exists()


def test_an_installed_distribution_has_its_content_under_turnwright(tmp_path: Path) -> None:
    inside = tmp_path / "turnwright" / "bundled" / "plugins"
    for folder in (inside, tmp_path / "plugins", tmp_path / "link"):
        folder.mkdir(parents=True)
    for room in ("turnwright", "link"):
        (tmp_path / room / "__init__.py").touch()
    shutil.copy(str(module.__file__), tmp_path / "link")
    ask = "from link.bundled import bundled; print(bundled('plugins'))"
    found = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()) == inside
