"""A commit that is too large for a local activity is an activity; either way it happens once."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from kernel.wire import names
from kernel.wire.ids import job_workflow
from store import jobs
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function
from tests.support.rig import Rig, rig
from tests.turns.builders import OK, Fn, package, records, until

pytestmark = pytest.mark.slow


def writes(count: int) -> str:
    return f'for n in range({count}):\n    await ctx.plugin_data.set("notes", str(n), n)\n{OK}'


def markers(history: WorkflowHistory) -> int:
    return sum(event.HasField("marker_recorded_event_attributes") for event in history.events)


def activities(history: WorkflowHistory) -> list[str]:
    """Names of the activities that are no local ones."""
    scheduled = [event.activity_task_scheduled_event_attributes for event in history.events]
    return [attributes.activity_type.name for attributes in scheduled if attributes.activity_id]


@pytest.mark.parametrize(("count", "commits"), [(200, []), (201, [names.COMMIT_TURN])])
async def test_a_turn_of_more_than_200_proposals_is_committed_by_an_activity(
    tmp_path: Path, count: int, commits: list[str]
) -> None:
    async with rig(tmp_path, packages={"work": function(writes(count))}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert (result["status"], result["committed"]["data"]) == ("committed", count)
        assert len(await records(r, session, "work", "notes")) > 0
        history = await session.turn(result["turn_id"]).fetch_history()
        assert activities(history) == [names.RUN_FUNCTION, *commits]
        assert markers(history) == 2  # open_turn and the commit, or its refusal to be local


async def test_a_job_of_more_than_200_proposals_is_committed_by_an_activity(tmp_path: Path) -> None:
    work = function(
        writes(201), stage="post-turn", extra='  effects: { writes: ["plugin-data:self:notes"] }\n'
    )
    work["PLUGIN.md"] = work["PLUGIN.md"].replace("stage: post-turn", "stage: post-turn, detached: true")
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        job_id = (await session.play("go"))["jobs"][0]["job_id"]

        async def status() -> str:
            return await _status(r, job_id)

        assert await until(status, lambda found: found not in jobs.OPEN) == "succeeded"
        history = await r.client.get_workflow_handle(job_workflow(job_id)).fetch_history()
        assert activities(history) == [names.RUN_FUNCTION, names.COMMIT_JOB]


async def _status(r: Rig, job_id: str) -> str:
    async with r.store.read() as conn:
        job = await jobs.get(conn, job_id)
    assert job is not None
    return job.status


async def test_hundreds_of_failed_runs_with_long_messages_still_commit_and_show(tmp_path: Path) -> None:
    failing = Fn("{ stage: pre-turn }", body='raise ValueError("言" * 300)')
    many = {f"many-{n}": package(**{f"r{m}": failing for m in range(60)}) for n in range(7)}
    model = ModelServer([Reply(text="Once.")])
    async with rig(tmp_path, packages={**many, "tale": STORY}, model=model) as r:
        session = await r.session(packages=[*many, "tale"])
        receipt = await session.submit("go")
        result = await session.result(receipt, timeout_s=90)
        assert result["status"] == "committed"
        failed = [run for run in result["runs"] if run["status"] == "failed"]
        assert (len(failed), {run["reason"] for run in failed}) == (420, {"runtime.failed"})
        assert {run["message"][-1] for run in failed} == {"…"}
        graph = await session.turn(receipt["turn_id"]).query("graph")
        assert len(graph["nodes"]) == 421
