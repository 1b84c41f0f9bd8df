"""Packages that are not bundled: their code runs once somebody has approved it, in a process of its own."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from client import grants as people
from kernel.errors import Code, TurnwrightError
from link.bundled import bundled
from store import grants
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function, story_with
from tests.support.rig import Rig, SessionDriver, rig
from tests.turns.builders import answers, calls, ended, entry, reason, records, tool

DICE = str(bundled("plugins") / "dice")
DATA = "contributes:\n  data: { words: { description: Words. } }\n"
WORDS = function(
    'import os\nawait ctx.plugin_data.set("words", "k", {"pid": os.getpid()})\n'
    'return {"outcome": "success", "value": {}}',
    root=DATA,
)


@asynccontextmanager
async def community(tmp_path: Path, *, watch: bool = False, **packages: Any) -> AsyncIterator[Rig]:
    model = ModelServer([Reply(text="So it is.", times=0)])
    environ = {"TURNWRIGHT_WATCH": "true"} if watch else {}
    everything = {"tale": STORY, **packages}
    async with rig(tmp_path, packages=everything, model=model, community=True, **environ) as r:
        yield r


async def approve(r: Rig, name: str, session_id: str | None = None, *, follow: bool = False) -> None:
    folder = str(r.home / "packages" / name)
    await people.approve(r.settings, folder, session_id=session_id, follow=follow)


async def left_out(r: Rig, package: str) -> str:
    """The notice of a session that opens without a package which it asked for."""
    session = await r.session(packages=["tale", package])
    state = await session.until(lambda view: view["notices"])
    assert ended(await session.play("I wait.")) == {"tale": "success"}
    assert [notice["code"] for notice in state["notices"]] == [Code.PACKAGE_APPROVAL]
    return str(state["notices"][0]["message"])


async def refused(session: SessionDriver) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as failed:
        await session.handle.result()
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause


async def test_code_that_nobody_approved_is_left_out_and_the_notice_says_what_to_type(tmp_path: Path) -> None:
    async with community(tmp_path, words=WORDS) as r:
        assert "`turnwright package approve words`" in await left_out(r, "words")


async def test_a_package_without_code_needs_no_approval(tmp_path: Path) -> None:
    async with community(tmp_path) as r:
        session = await r.session(packages=["tale"])
        assert (await session.play("I wait."))["status"] == "committed"


async def test_approved_code_runs_in_another_process_and_its_writes_commit(tmp_path: Path) -> None:
    async with community(tmp_path, words=WORDS) as r:
        await approve(r, "words")
        session = await r.session(packages=["tale", "words"])
        result = await session.play("I wait.")
        assert (result["status"], ended(result)["words"]) == ("committed", "success")
        pid = (await records(r, session, "words", "words"))["k"]["pid"]
        assert pid != os.getpid()


async def test_a_tool_of_a_community_package_is_called_there_too(tmp_path: Path) -> None:
    files = story_with(
        "{plugin: [look]}", entry(tool("look", 'return {"seen": "a door"}')), "  tools: [look]\n"
    )
    model = ModelServer([Reply(tool_calls=calls("look")), Reply(text="A door.")])
    async with rig(tmp_path, packages={"eye": files}, model=model, community=True) as r:
        await approve(r, "eye")
        session = await r.session(packages=["eye"])
        assert (await session.play("I look."))["status"] == "committed"
        assert answers(r, 2) == ['{"seen":"a door"}']


async def test_an_approval_for_one_session_is_none_for_another(tmp_path: Path) -> None:
    async with community(tmp_path, words=WORDS) as r:
        session_id = f"mine-{uuid.uuid4().hex[:8]}"
        await approve(r, "words", session_id)
        mine = await r.session(session_id, packages=["tale", "words"])
        assert (await mine.play("I wait."))["status"] == "committed"
        await left_out(r, "words")


async def test_changed_content_asks_again(tmp_path: Path) -> None:
    async with community(tmp_path, words=WORDS) as r:
        await approve(r, "words")
        edit(r, "words")
        await left_out(r, "words")


async def test_changed_content_of_a_followed_folder_asks_nobody(tmp_path: Path) -> None:
    async with community(tmp_path, watch=True, words=WORDS) as r:
        await approve(r, "words", follow=True)
        edit(r, "words")
        session = await r.session(packages=["tale", "words"])
        assert ended(await session.play("I wait."))["words"] == "success"


async def test_outside_dev_no_folder_is_followed(tmp_path: Path) -> None:
    async with community(tmp_path, words=WORDS) as r:
        await approve(r, "words", follow=True)
        await left_out(r, "words")


async def test_an_edit_that_nobody_approved_leaves_a_session_with_what_was_approved(tmp_path: Path) -> None:
    async with community(tmp_path, watch=True, words=WORDS) as r:
        await approve(r, "words")
        session = await r.session(packages=["tale", "words"])
        before = await session.play("I wait.")
        edit(r, "words")
        assert r.parts is not None
        assert r.parts.following is not None
        await r.parts.following.take()
        assert (ended(before), ended(await session.play("I wait."))) == (ended(before),) * 2


@pytest.mark.parametrize("follow", [False, True])
async def test_a_revoked_approval_stops_the_next_call(tmp_path: Path, follow: bool) -> None:
    async with community(tmp_path, watch=True, words=WORDS) as r:
        await approve(r, "words", follow=follow)
        session = await r.session(packages=["tale", "words"])
        await session.play("I wait.")
        await people.revoke(r.settings, "words", session_id=None)
        result = await session.play("I wait again.")
        assert result["status"] == "committed"
        assert ended(result)["words"] == "failed"
        assert reason(result, "words") == Code.PACKAGE_APPROVAL


async def test_what_is_not_approved_cannot_be_revoked(tmp_path: Path) -> None:
    async with community(tmp_path, words=WORDS) as r:
        with pytest.raises(TurnwrightError, match="has no approval"):
            await people.revoke(r.settings, "words", session_id=None)
        await approve(r, "words")
        with pytest.raises(TurnwrightError, match="for session s9") as caught:
            await people.revoke(r.settings, "words", session_id="s9")
        assert caught.value.accepted == "an approval that is in force: for every session"
        async with r.store.read() as conn:
            assert [one.package_id for one in await grants.list_all(conn)] == ["words"]


async def test_a_bundled_package_needs_no_approval_and_takes_none(tmp_path: Path) -> None:
    async with community(tmp_path) as r:
        with pytest.raises(TurnwrightError, match="is bundled"):
            await people.approve(r.settings, DICE, session_id=None, follow=False)
        session = await r.session(packages=["tale", "dice"])
        assert ended(await session.play("I roll."))["dice"] == "success"


async def test_an_import_that_is_not_for_community_packages_is_refused_with_its_line(tmp_path: Path) -> None:
    files = {**WORDS, "handler.py": "import numpy\n" + WORDS["handler.py"]}
    async with community(tmp_path, numbers=files) as r:
        await approve(r, "numbers")
        error = await refused(await r.session(packages=["numbers"]))
        assert error.type == Code.PACKAGE_LOAD
        assert "numbers/handler.py:1: " in error.message
        assert "imports numpy, which only bundled packages may" in error.message


def edit(r: Rig, name: str) -> None:
    handler = r.home / "packages" / name / "handler.py"
    handler.write_text(handler.read_text() + "\n# edited\n")
