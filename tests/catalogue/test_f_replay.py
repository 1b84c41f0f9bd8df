"""Catalogue F7 to F9: what replay must bear, and what workflow code must not call."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernel.wire import names
from kernel.wire.ids import agent_workflow
from tests.histories import digests
from tests.histories.replay import faults, runners
from tests.running.guide import PACKAGE, STORY, approvals, guide, marks
from tests.support.model_server import ModelServer, Reply
from tests.support.rig import rig

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
async def test_f7_three_approvals_race_their_deadline(tmp_path: Path) -> None:
    """Two are answered, one expires; whatever came first, replay comes to the same."""
    model = ModelServer([marks(3), Reply(text="It is done.")])
    async with rig(
        tmp_path, packages={PACKAGE: guide()}, model=model, TURNWRIGHT_APPROVAL_DEADLINE_S="8"
    ) as r:
        session = await r.session(packages=[PACKAGE])
        receipt = await session.submit("I look up.")
        first, second, _ = await approvals(session, 3)
        await session.handle.signal(names.RESOLVE, {"ref": first, "decision": "approve"})
        await session.update(names.RESOLVE, {"ref": second, "decision": "deny"})
        result = await session.result(receipt)
        assert result["story"]["text"] == "It is done."
        state = await session.until(lambda state: not state["jobs"])
        answers = {approval["ref"]: approval["status"] for approval in state["approvals"]}
        assert "open" not in answers.values()
        assert "expired" in answers.values()
        await session.update(names.CONTROL, {"action": "end"})
        await session.handle.result()
        histories = [
            await r.client.get_workflow_handle(workflow_id).fetch_history()
            for workflow_id in (
                session.handle.id,
                receipt["workflow_id"],
                agent_workflow(receipt["turn_id"], STORY),
            )
        ]
    for runner in runners().values():
        assert await faults(histories, runner) == {}


async def test_f8_signal_update_and_end_of_activity_in_one_task() -> None:
    history = digests.recorded()["one-task"]
    assert digests.meets_in_one_task(history)
    for runner in runners().values():
        assert await faults([history], runner) == {}


FORBIDDEN = {
    ("asyncio", "wait"),
    ("asyncio", "as_completed"),
    ("asyncio", "to_thread"),
    ("time", "time"),
    ("time", "sleep"),
    ("time", "monotonic"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("uuid", "uuid4"),
}
"""Calls whose order or value differs from process to process; `workflow` has a twin for each.

Of `random` every function is one. What workflow code may import at all is held by import-linter.
"""

FIXTURE = """
import asyncio
import datetime
import random
from asyncio import wait as hold

async def run(self):
    done, _ = await asyncio.wait({one(), two()})
    await hold(tasks)
    await workflow.wait(tasks)
    await workflow.wait_condition(lambda: self.done)
    when, who = datetime.datetime.now(), random.choice(self.names)
    sure = workflow.now(), workflow.random().choice(self.names)
"""


def test_f9_asyncio_wait_is_flagged() -> None:
    assert flagged(FIXTURE) == [
        "8: asyncio.wait",
        "9: asyncio.wait",
        "12: datetime.now",
        "12: random.choice",
    ]


@pytest.mark.parametrize("file", sorted((ROOT / "workflows").glob("*.py")), ids=lambda file: file.stem)
def test_f9_workflows_call_nothing_that_differs_from_process_to_process(file: Path) -> None:
    assert flagged(file.read_text(encoding="utf-8")) == []


def flagged(source: str) -> list[str]:
    """The forbidden calls of a module, with their lines."""
    tree = ast.parse(source)
    borrowed = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=owner, attr=name):
                called = (ast.unparse(owner).rpartition(".")[2], name)
            case ast.Name(id=alias):
                called = borrowed.get(alias, ("", alias))
            case _:
                continue
        if called in FORBIDDEN or called[0] == "random":
            found.append((node.lineno, ".".join(called)))
    return [f"{line}: {name}" for line, name in sorted(found)]
