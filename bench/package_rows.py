"""What packages cost before any turn: choosing the active ones, and loading what did not change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from activities.catalog import Catalog
from bench import child_calls
from bench.measure import Clock, interleaved
from bench.report import Row
from kernel.catalog import activate
from kernel.manifest import Package, load_package
from store.contents import DatabaseContents

if TYPE_CHECKING:
    from bench.rows import Effort
    from bench.stage import Stage

COUNT = 300
PLAYED = 5
"""Packages of an ordinary session."""

ACTIVATION_MS = 30
UNCHANGED_MS = 200
CHILD_MS = 3


async def activation(stage: Stage, effort: Effort) -> list[Row]:
    """Choosing the active ones of 300 packages of 3 runtimes; the reference only reads what it must know."""
    packages = {name: _parsed(name, files) for name, files in _all().items()}

    async def product() -> float:
        clock = Clock()
        found = activate(list(packages), packages, approved=packages)
        taken = clock.seconds() * 1000
        assert len(found.require().active) == COUNT
        return taken

    async def reference() -> float:
        clock = Clock()
        for package in packages.values():
            _read(package)
        return clock.seconds() * 1000

    name = f"activation of {COUNT} packages"
    ours, theirs = await interleaved([product, reference], times=effort.turns, warm=2, label=name)
    return [Row(name, "ms", ours, theirs, limit=ACTIVATION_MS, of_ratio=False)]


async def unchanged(stage: Stage, effort: Effort) -> list[Row]:
    """Loading what did not change: 300 folders that a worker knows, and the packages of one session in a
    worker that finds their content in its cache on disk. The reference only reads the same files.
    """
    root = stage.home / "many"
    _write(root / "packages")
    async with stage.store() as store:
        contents = DatabaseContents(store)

        def catalog() -> Catalog:
            return Catalog(store, contents, root / "packages", [], root / "cache", kept=COUNT)

        known = catalog()
        sources = await known.sources()
        digests = {name: (await known.freeze(source, "s"))["digest"] for name, source in sources.items()}
        played = dict(list(digests.items())[:PLAYED])
        await _live(known, digests)

        async def many() -> float:
            clock = Clock()
            found = await known.sources()
            await _live(known, {name: source.digest for name, source in found.items()})
            taken = clock.seconds() * 1000
            assert len(found) == COUNT
            return taken

        async def few() -> float:
            fresh = catalog()
            clock = Clock()
            await _live(fresh, played)
            return clock.seconds() * 1000

        async def files() -> float:
            return await asyncio.to_thread(_reading, root / "packages", COUNT)

        async def files_of_few() -> float:
            return await asyncio.to_thread(_reading, root / "packages", PLAYED)

        rows = []
        for name, product, reference in (
            (f"{COUNT} unchanged packages from memory", many, files),
            (f"{PLAYED} unchanged packages from disk", few, files_of_few),
        ):
            ours, theirs = await interleaved([product, reference], times=effort.others, warm=1, label=name)
            rows.append(Row(name, "ms", ours, theirs, limit=UNCHANGED_MS, of_ratio=False))
        return rows


async def child(stage: Stage, effort: Effort) -> list[Row]:
    """A call to package code in a warm process of its own, beside the same call in the worker's process."""
    children, away, here = await child_calls.calls(stage.home)

    async def beyond() -> float:
        return await away() - await here()

    try:
        name = "a call to package code"
        ours, theirs = await interleaved([away, here], times=effort.others, warm=1, label=name)
        [extra] = await interleaved([beyond], times=effort.others, warm=1, label=f"{name}: the process")
    finally:
        await children.close()
    return [
        Row(name, "ms", ours, theirs),
        Row(f"{name}: the process", "ms", extra, limit=CHILD_MS, of_ratio=False),
    ]


async def _live(catalog: Catalog, digests: Mapping[str, str]) -> None:
    await asyncio.gather(*(catalog.live(name, digest) for name, digest in digests.items()))


def _reading(folder: Path, count: int) -> float:
    clock = Clock()
    for package in sorted(folder.iterdir())[:count]:
        for file in sorted(package.rglob("*")):
            if file.is_file():
                file.read_bytes()
    return clock.seconds() * 1000


def _read(package: Package) -> tuple[Any, ...]:
    manifest = package.manifest
    ios = [(runtime.manifest.io.inputs, runtime.manifest.io.output) for runtime in package.runtimes]
    return manifest.requires, manifest.provides, manifest.conflicts, manifest.contributes.events, ios


def _all() -> dict[str, dict[str, str]]:
    return {f"p{number:03}": _files(number) for number in range(COUNT)}


def _files(number: int) -> dict[str, str]:
    """A package of three runtimes that declares an event; two of three packages require another's word."""
    requires = f"requires: [word.w{number - 1}@1]\n" if number % 3 else ""
    event = f"contributes:\n  events: [{{ topic: t.n{number}, description: A topic. }}]\n"
    output = f"io: {{ output: {{ contract: word.w{number}@1 }} }}\n"
    return {
        "PLUGIN.md": f"---\ndescription: One of many.\n{requires}{event}---\n",
        "runtimes/say/RUNTIME.md": f"---\nschedule: {{ stage: pre-turn }}\n{output}function: {{}}\n---\n",
        "runtimes/say/handler.py": "async def handler(ctx):\n    return {'outcome': 'success'}\n",
        "runtimes/look/RUNTIME.md": "---\nschedule: { stage: post-turn }\n---\nTell {{ player.message }}.\n",
        "runtimes/tidy/RUNTIME.md": "---\nschedule: { stage: audit }\n---\nTidy up.\n",
    }


def _parsed(name: str, files: Mapping[str, str]) -> Package:
    package = load_package({path: text.encode() for path, text in files.items()}, name=name).package
    assert package is not None
    return package


def _write(folder: Path) -> None:
    for name, files in _all().items():
        for path, text in files.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
