"""A session whose workflow was lost starts anew, and goes on with what the store knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.wire import names
from tests.support.packages import function
from tests.support.rig import rig
from tests.turns.builders import OK

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("asked_for", "runs"), [(None, ["work"]), (["more"], ["more"])])
async def test_a_session_that_starts_anew_keeps_its_packages_unless_others_are_asked_for(
    tmp_path: Path, asked_for: list[str] | None, runs: list[str]
) -> None:
    async with rig(tmp_path, packages={"work": function(OK), "more": function(OK)}) as r:
        session = await r.session(packages=["work"])
        await session.update(names.CONFIGURE, {"locale": "de"})
        await session.play("one")
        await session.handle.terminate("by a test")
        again = await r.session(session.session_id, packages=asked_for)
        assert [run["runtime_id"] for run in (await again.play("two"))["runs"]] == runs
        receipt = await again.update(names.CONFIGURE, {"packages": ["work", "more"]})
        await again.until(lambda state: state["revision"] == receipt["revision"])
        result = await again.play("three")
        assert ([run["runtime_id"] for run in result["runs"]], result["logical_turn"]) == (
            ["more", "work"],
            3,
        )
