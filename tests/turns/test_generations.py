"""Package folders that change while sessions play: what was started ends as it began, later turns follow."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from kernel.wire import names
from link.settings import Settings
from tests.support.rig import Files, Rig, SessionDriver, rig, until_ready, worker_process, write_packages
from tests.turns.builders import until

pytestmark = pytest.mark.slow

MANUAL = (
    "---\ndescription: Says which one it is.\n{root}runtime:\n  schedule: {{ trigger: {{ type: manual }} }}\n"
)


def says(value: str, before: str = "", root: str = "") -> Files:
    """A package `work` whose manual runtime answers with this word."""
    body = f'{before}    return {{"outcome": "success", "value": {{"says": {value!r}}}}}\n'
    return {
        "PLUGIN.md": f"{MANUAL.format(root=root)}  function: {{}}\n---\n",
        "handler.py": f"import asyncio\nfrom pathlib import Path\n\n\nasync def handler(ctx):\n{body}",
    }


def waiting(folder: Path, value: str) -> Files:
    """The same, but it shows that it runs and then waits for `go`."""
    return says(
        value,
        f"    Path({str(folder / 'started')!r}).touch()\n"
        f"    while not Path({str(folder / 'go')!r}).exists():\n        await asyncio.sleep(0.01)\n",
    )


def edit(r: Rig, files: Files) -> None:
    write_packages(r.home / "packages", {"work": files})


async def taken(r: Rig) -> bool:
    """Whether what the folder holds now is what later turns run."""
    assert r.parts is not None
    assert r.parts.following is not None
    return r.parts.following.takes((await r.parts.catalog.sources())["work"])


async def ask(session: SessionDriver, package: str = "work") -> dict[str, str]:
    """Start the manual runtime."""
    return await session.update(names.RUN, {"action_id": uuid.uuid4().hex[:8], "runtime_id": package})


async def word(session: SessionDriver, package: str = "work") -> str:
    """What the package says in a turn from its start to its end."""
    return said(await session.result(await ask(session, package)))


def said(result: dict[str, Any]) -> str:
    return str(result["output"]["says"])


async def test_an_edit_is_for_later_turns_and_a_running_one_ends_as_it_began(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": waiting(tmp_path, "old")}, TURNWRIGHT_WATCH="true") as r:
        first, other = [await r.session(packages=["work"]) for _ in range(2)]
        receipt = await ask(first)
        await until(lambda: asyncio.to_thread((tmp_path / "started").exists), bool)
        edit(r, says("new"))
        await until(lambda: taken(r), bool)
        assert await word(other) == "new"
        (tmp_path / "go").touch()
        assert said(await first.result(receipt)) == "old"
        assert await word(first) == "new"


async def test_a_broken_edit_keeps_what_was_and_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def told(text: str) -> bool:
        return text in caplog.text

    async with rig(tmp_path, packages={"work": says("old")}, TURNWRIGHT_WATCH="true") as r:
        session = await r.session(packages=["work"])
        assert await word(session) == "old"
        edit(r, {"handler.py": "async def handler(ctx:\n"})
        await until(lambda: told("package work was edited and is broken"), bool)
        assert await word(session) == "old"
        edit(r, {"handler.py": "import nothing_of_that_name\n\n\nasync def handler(ctx): ...\n"})
        await until(lambda: told("package work does not load"), bool)
        assert await word(session) == "old"
        edit(r, says("alone", root="requires: [gone@1]\n"))
        await until(lambda: taken(r), bool)
        assert await word(session) == "old"
        assert f"session {session.session_id} keeps the former work" in caplog.text
        edit(r, says("mended"))
        await until(lambda: taken(r), bool)
        assert await word(session) == "mended"


async def test_turns_after_the_removal_of_a_folder_name_the_package(tmp_path: Path) -> None:
    packages = {"work": says("here"), "other": says("still")}
    async with rig(tmp_path, packages=packages, TURNWRIGHT_WATCH="true") as r:
        session = await r.session(packages=["work", "other"])
        assert await word(session) == "here"
        shutil.rmtree(r.home / "packages" / "work")

        async def failure() -> ApplicationError | None:
            try:
                await word(session)
            except WorkflowFailureError as error:
                return cast(ApplicationError, error.cause)
            return None

        error = await until(failure, bool)
        assert error.type == "package.unknown"
        assert "'work' is gone" in error.message
        await session.update(names.CONFIGURE, {"excluded": ["work"]})
        state = await session.until(lambda state: state["revision"] == 1)
        assert state["notices"][-1]["code"] == "activation.excluded"
        assert await word(session, "other") == "still"


async def test_what_a_session_was_just_configured_with_is_not_taken_back(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": says("old")}, TURNWRIGHT_WATCH="true") as r:
        session = await r.session(packages=["work"])
        assert await word(session) == "old"
        for number in range(3):
            edit(r, says(f"new {number}"))
            write_packages(r.home / "packages", {f"more-{number}": says("more")})
            await session.update(names.CONFIGURE, {"packages": ["work", f"more-{number}"]})
            assert await word(session) == f"new {number}"
            assert await word(session, f"more-{number}") == "more"


async def test_without_following_an_edit_changes_nothing_until_configure(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": says("old")}) as r:
        session = await r.session(packages=["work"])
        assert await word(session) == "old"
        edit(r, says("new"))
        assert await word(session) == "old"
        await session.update(names.CONFIGURE, {"packages": ["work"]})
        await session.until(lambda state: state["revision"] == 1)
        assert await word(session) == "new"


@pytest.mark.parametrize("store", ["database", "directory"])
async def test_a_started_run_ends_as_it_began_on_a_worker_that_never_saw_the_folder(
    tmp_path: Path, store: str
) -> None:
    environ = {"TURNWRIGHT_WATCH": "true"}
    if store == "directory":
        environ["TURNWRIGHT_PACKAGE_STORE"] = str(tmp_path / "contents")
    async with rig(tmp_path, packages={"work": waiting(tmp_path, "old")}, start_worker=False, **environ) as r:
        with worker_process(r.settings, tmp_path, "first") as first:
            await until_ready(first, tmp_path, "first")
            session = await r.session(packages=["work"])
            receipt = await ask(session)
            await until(lambda: asyncio.to_thread((tmp_path / "started").exists), bool, 30)
            first.kill()
        shutil.rmtree(r.home / "packages")
        shutil.rmtree(r.settings.home / "cache")
        (tmp_path / "go").touch()
        with worker_process(elsewhere(r.settings, tmp_path / "second"), tmp_path, "second") as second:
            await until_ready(second, tmp_path, "second")
            assert said(await session.result(receipt, 60)) == "old"


def elsewhere(settings: Settings, home: Path) -> Settings:
    """The settings of a worker on another machine: the same server and stores, no folder, nothing cached."""
    home.mkdir()
    packages = settings.packages.model_copy(update={"path": (), "watch": False})
    store = settings.store.model_copy(update={"url": settings.store_url})
    return settings.model_copy(update={"home": home, "packages": packages, "store": store})
