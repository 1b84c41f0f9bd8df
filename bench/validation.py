"""Checking many package folders, beside libyaml parsing the same files."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from bench.measure import Clock, Series, interleaved
from bench.report import Row
from client import validation
from link.bundled import bundled
from store.package_files import read_folder

if TYPE_CHECKING:
    from bench.rows import Effort
    from bench.stage import Stage

COUNT = 300
MODEL = "fact-index"
"""A bundled package of three runtimes; the others are copies of it."""

TIMES_LIBYAML = 5
MEMORY_MB = 300

_PARSED = (".md", ".yaml", ".json")
_PEAK = """\
import resource, sys
from pathlib import Path
from client import validation
kept = [validation.check(folder) for folder in sorted(Path(sys.argv[1]).iterdir())]
assert all(checked.good for checked in kept)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak / (1024 if sys.platform == "linux" else 1024 * 1024))
"""


async def validate(stage: Stage, effort: Effort) -> list[Row]:
    """Checking 300 folders of 3 runtimes, all rules and all files; the reference parses what is YAML or JSON
    of them. The memory is the peak of a process that does this and keeps every verdict.
    """
    folders = _copies(stage.home / "validated")

    async def product() -> float:
        clock = Clock()
        found = [validation.check(folder) for folder in folders]
        taken = clock.seconds() * 1000
        assert all(checked.good for checked in found)
        return taken

    async def reference() -> float:
        clock = Clock()
        for folder in folders:
            _parse(folder)
        return clock.seconds() * 1000

    name = f"validation of {COUNT} packages"
    ours, theirs = await interleaved([product, reference], times=effort.turns, warm=2, label=name)
    memory = Series((await _peak(stage.home / "validated"),))
    return [
        Row(name, "ms", ours, theirs, limit=TIMES_LIBYAML),
        Row(f"{name}: memory", "MB", memory, limit=MEMORY_MB, of_ratio=False),
    ]


def _copies(root: Path) -> list[Path]:
    content = read_folder(bundled("plugins") / MODEL).files
    for number in range(COUNT):
        for path, data in content.items():
            file = root / f"p{number:03}" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.replace(f"{MODEL}/".encode(), f"p{number:03}/".encode()))
    return sorted(root.iterdir())


def _parse(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.suffix in _PARSED:
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".md":
                text = text.split("---\n")[1] if text.startswith("---\n") else ""
            yaml.load(text, Loader=yaml.CSafeLoader)


async def _peak(root: Path) -> float:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PEAK, str(root), stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert process.returncode == 0
    return float(told)
