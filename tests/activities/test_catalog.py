"""Packages are loaded once, however many wait for them, and beside the event loop."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from activities.catalog import Catalog
from kernel.errors import Code, TurnwrightError
from store.contents import DatabaseContents
from store.engine import Store
from tests.support.packages import function
from tests.support.rig import write_packages
from tests.turns.builders import until

MANY = 20


def catalog(store: Store, tmp_path: Path, *head: str) -> Catalog:
    """A catalog with one package, `work`, whose handler module begins with these lines."""
    files = function("return None")
    files = {**files, "handler.py": "\n".join([*head, files["handler.py"]])}
    write_packages(tmp_path / "packages", {"work": files})
    return Catalog(store, DatabaseContents(store), tmp_path / "packages", [], tmp_path / "cache")


async def frozen(packages: Catalog) -> str:
    """The digest of `work`, stored."""
    source = (await packages.sources())["work"]
    return (await packages.freeze(source, "s1"))["digest"]


def archives_read(store: Store) -> list[str]:
    """Every statement from now on that reads the content of a package."""
    found: list[str] = []

    @event.listens_for(Engine, "before_cursor_execute")
    def note(_conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "packages.archive" in statement:
            found.append(statement)

    return found


async def test_many_that_need_a_digest_at_once_share_one_load(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "imports"
    here = catalog(store, tmp_path, f"print('x', file=open({str(log)!r}, 'a'))")
    digest, read = await frozen(here), archives_read(store)
    found = await asyncio.gather(*(here.live("work", digest) for _ in range(MANY)))
    assert len({id(live) for live in found}) == 1
    assert len(read) == 1
    assert log.read_text() == "x\n"


async def test_a_folder_is_parsed_again_only_when_it_changed(store: Store, tmp_path: Path) -> None:
    here = catalog(store, tmp_path)
    found = [sources["work"] for sources in await asyncio.gather(*(here.sources() for _ in range(MANY)))]
    assert len({id(source.package) for source in found}) == 1
    catalog(store, tmp_path, "# changed")
    changed = (await here.sources())["work"]
    assert changed.package is not found[0].package
    assert changed.digest != found[0].digest


@pytest.mark.timeout(60)
async def test_the_event_loop_turns_while_package_code_loads(store: Store, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    begin, wait = f"Path({str(begun)!r}).touch()", f"while not Path({str(go)!r}).exists(): time.sleep(0.01)"
    here = catalog(store, tmp_path, "import time", "from pathlib import Path", begin, wait)
    source = (await here.sources())["work"]
    loading = asyncio.gather(*(here.try_code(source) for _ in range(MANY)))
    await until(lambda: asyncio.to_thread(begun.exists), bool)
    go.touch()  # on the loop itself the load would wait for ever for what only the loop can do
    await loading


async def test_one_that_stops_waiting_leaves_the_load_to_the_others(store: Store, tmp_path: Path) -> None:
    here = catalog(store, tmp_path)
    digest = await frozen(here)
    first, second = (asyncio.ensure_future(here.live("work", digest)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).digest == digest


async def test_a_load_that_failed_is_tried_again(store: Store, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    here = catalog(store, tmp_path, f"open({str(gate)!r})")
    digest = await frozen(here)
    for error in await asyncio.gather(*(here.live("work", digest) for _ in range(2)), return_exceptions=True):
        assert isinstance(error, TurnwrightError)
        assert error.code == Code.PACKAGE_LOAD
    gate.touch()
    assert (await here.live("work", digest)).digest == digest


async def test_what_was_not_asked_for_the_longest_is_unloaded_and_loads_again(
    store: Store, tmp_path: Path
) -> None:
    ids = ["one", "two", "three"]
    write_packages(tmp_path / "packages", {name: function(f"return '{name}'") for name in ids})
    here = Catalog(store, DatabaseContents(store), tmp_path / "packages", [], tmp_path / "cache", kept=2)
    sources = await here.sources()
    digests = {name: (await here.freeze(sources[name], "s1"))["digest"] for name in ids}

    def loaded() -> set[str]:
        marks = {name: digests[name].removeprefix("sha256:") for name in ids}
        return {name for name, mark in marks.items() if any(mark in module for module in list(sys.modules))}

    one, two, again, _ = [await here.live(name, digests[name]) for name in ("one", "two", "one", "three")]
    assert again is one
    assert loaded() == {"one", "three"}
    assert (await here.live("two", digests["two"])).code is not two.code
    assert loaded() == {"two", "three"}


async def test_two_packages_of_one_id_are_refused_with_their_folders(store: Store, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_packages(
            tmp_path / folder, {"work": function("return 1"), f"{folder}-only": function("return 2")}
        )
    folders = [tmp_path / "two", tmp_path / "one", tmp_path / "two"]
    here = Catalog(store, DatabaseContents(store), tmp_path / "none", folders, tmp_path / "cache")
    assert sorted(await here.sources()) == ["one-only", "two-only"]
    assert here.diagnose("work").startswith("several folders hold a package 'work': ")
    assert {str(tmp_path / name / "work") for name in ("one", "two")} <= set(
        here.diagnose("work").partition(": ")[2].split(", ")
    )
    assert (here.diagnose("one-only"), here.diagnose("nothing")) == ("", "")
