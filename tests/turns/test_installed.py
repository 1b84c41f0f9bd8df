"""Packages that were installed while a worker runs: found, played, switched off and taken out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError

from client import grants, packages
from client.installed import install, remove
from kernel.errors import Code
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function
from tests.support.rig import Rig, rig, write_packages
from tests.turns.builders import ended

WORDS = function('return {"outcome": "success", "value": {}}')


@asynccontextmanager
async def with_words(tmp_path: Path) -> AsyncIterator[Rig]:
    """A worker for which `words` was installed after its start, and approved."""
    write_packages(tmp_path / "src", {"words": WORDS})
    model = ModelServer([Reply(text="So it is.", times=0)])
    home = {"TURNWRIGHT_HOME": str(tmp_path / "home")}
    async with rig(tmp_path, packages={"tale": STORY}, model=model, community=True, **home) as r:
        install(r.settings, tmp_path / "src/words")
        await grants.approve(r.settings, "words", session_id=None, follow=False)
        yield r


async def test_a_running_worker_plays_what_was_installed(tmp_path: Path) -> None:
    async with with_words(tmp_path) as r:
        session = await r.session(packages=["tale", "words"])
        assert ended(await session.play("I wait.")) == {"tale": "success", "words": "success"}


async def test_a_package_that_is_off_stays_where_it_is_and_is_chosen_by_nobody(tmp_path: Path) -> None:
    async with with_words(tmp_path) as r:
        session = await r.session(packages=["tale", "words"])
        await session.play("I wait.")
        await packages.switch(r.settings, "words", enabled=False)
        assert ended(await session.play("I wait on."))["words"] == "success"
        refused = await r.session(packages=["tale", "words"])
        with pytest.raises(WorkflowFailureError) as failed:
            await refused.handle.result()
        assert getattr(failed.value.cause, "type", "") == Code.PACKAGE_DISABLED
        await packages.switch(r.settings, "words", enabled=True)
        again = await r.session(packages=["tale", "words"])
        assert ended(await again.play("I wait."))["words"] == "success"


async def test_a_session_goes_on_with_a_package_that_was_taken_out(tmp_path: Path) -> None:
    async with with_words(tmp_path) as r:
        session = await r.session(packages=["tale", "words"])
        await session.play("I wait.")
        remove(r.settings, "words")
        assert ended(await session.play("I wait on."))["words"] == "success"
