"""Recorded histories replay, whatever the order of sets; none changes without a line in the CHANGELOG."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from tests.histories import digests
from tests.histories.replay import faults, runners

ROOT = Path(__file__).parents[2]
SEEDS = ("0", "1", "20260")


@pytest.mark.parametrize("runner", runners())
async def test_recorded_histories_replay(runner: str) -> None:
    assert await faults(digests.recorded().values(), runners()[runner]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_recorded_histories_replay_in_any_order_of_sets(seed: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.histories.replay",
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()


def test_every_kind_of_workflow_is_recorded() -> None:
    kinds = {
        history.events[0].workflow_execution_started_event_attributes.workflow_type.name
        for history in digests.recorded().values()
    }
    assert kinds == {"Session", "Turn", "Agent", "Job"}


def test_session_continues_as_new_in_the_record() -> None:
    ends = [
        history.events[-1].event_type
        for name, history in digests.recorded().items()
        if name.startswith("session")
    ]
    assert len(ends) > 1
    assert set(ends[:-1]) == {EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW}
    assert ends[-1] == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED


@pytest.mark.parametrize("name", ["session-1", "turn", "agent", "job"])
async def test_replay_notices_another_order(name: str) -> None:
    """A history in which another activity stands: the code of today would not have written it."""
    refused = await faults([_with_another_activity(digests.recorded()[name])], runners()["unsandboxed"])
    assert len(refused) == 1


def test_recorded_histories_are_the_accepted_ones() -> None:
    changelog = digests.CHANGELOG.read_text(encoding="utf-8")
    assert digests.problem(digests.found(), digests.accepted(), changelog) is None


def test_changed_history_is_refused_without_its_line() -> None:
    known = {"turn": "aa", "job": "bb"}
    line = f"- Recorded histories ({digests.name_of(known)}): a reason\n"
    assert digests.problem(known, known, f"# Changelog\n\n{line}") is None
    assert "no line of CHANGELOG.md" in str(digests.problem(known, known, "# Changelog\n"))
    assert "turn: changed by hand" in str(digests.problem({**known, "turn": "cc"}, known, line))
    assert "job: changed by hand" in str(digests.problem({"turn": "aa"}, known, line))
    replaced = {**known, "turn": "cc"}
    assert "no line of CHANGELOG.md" in str(digests.problem(replaced, replaced, line))


def _with_another_activity(history: WorkflowHistory) -> WorkflowHistory:
    text = history.to_json()
    for name in ("open_session", "run_function", "call_model"):
        text = text.replace(f'"name": "{name}"', '"name": "something_else"')
    assert text != history.to_json()
    return WorkflowHistory.from_json(history.workflow_id, text)
