"""Worker versioning: an upgrade in the middle of a turn, and a worker that is not current."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.workflow.v1 import WorkflowExecutionVersioningInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client

from kernel.errors import Code, TurnwrightError
from kernel.wire.ids import agent_workflow
from link import deployment
from link.settings import DeploymentSettings, Settings
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY, function
from tests.support.rig import rig, until_ready, worker_process

pytestmark = pytest.mark.slow

DONE = "return {'outcome': 'success'}"


def build(settings: Settings, name: str, build_id: str, *, set_current: bool = True) -> Settings:
    versions = DeploymentSettings(name=name, build_id=build_id, set_current=set_current)
    return settings.model_copy(update={"deployment": versions})


async def versioning(client: Client, workflow_id: str) -> WorkflowExecutionVersioningInfo:
    request = DescribeWorkflowExecutionRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow_id)
    )
    reply = await client.workflow_service.describe_workflow_execution(request)
    return reply.workflow_execution_info.versioning_info


async def ran_on(client: Client, workflow_id: str) -> tuple[str, int]:
    """Build id and versioning behavior of a workflow."""
    info = await versioning(client, workflow_id)
    return info.deployment_version.build_id, info.behavior


PINNED = VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
AUTO_UPGRADE = VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE


async def test_upgrade_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    name = f"upgrade-{uuid.uuid4().hex[:8]}"
    model = ModelServer([Reply(text="One.", hold=True), Reply(text="Two.")])
    async with rig(tmp_path, packages={"tale": STORY}, model=model, start_worker=False) as r:
        with worker_process(build(r.settings, name, "1"), tmp_path, "old") as old:
            await until_ready(old, tmp_path, "old")
            session = await r.session(packages=["tale"])
            first = await session.submit("I look up.")
            await model.held.wait()
            with worker_process(build(r.settings, name, "2"), tmp_path, "new") as new:
                await until_ready(new, tmp_path, "new")
                assert await deployment.current_build(r.client, name) == "2"
                model.release()
                assert (await session.result(first))["story"]["text"] == "One."
                old.send_signal(signal.SIGTERM)
                assert old.wait(30) == 0
                second = await session.submit("I look down.")
                assert (await session.result(second))["story"]["text"] == "Two."
                for receipt, build_id in ((first, "1"), (second, "2")):
                    agent = agent_workflow(receipt["turn_id"], "tale")
                    assert await ran_on(r.client, receipt["workflow_id"]) == (build_id, PINNED)
                    assert await ran_on(r.client, agent) == (build_id, PINNED)
                assert await ran_on(r.client, session.handle.id) == ("2", AUTO_UPGRADE)
        model.assert_calls(2)
    assert Code.WORKER_NOT_CURRENT not in (tmp_path / "new.log").read_text()


async def test_worker_that_is_not_current_says_so(tmp_path: Path) -> None:
    name = f"idle-{uuid.uuid4().hex[:8]}"
    async with rig(tmp_path, start_worker=False) as r:
        idle = build(r.settings, name, "1", set_current=False)
        with worker_process(idle, tmp_path) as process:
            await until_ready(process, tmp_path)
        version = deployment.version_of(idle.deployment)
        assert version
        command = deployment.command(r.client, version)
    log = (tmp_path / "worker.log").read_text()
    assert f"{Code.WORKER_NOT_CURRENT}: build 1 is not the current version, no build is" in log
    assert command in log


async def test_build_that_nobody_serves_cannot_be_made_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "REGISTER_S", 0.5)
    async with rig(tmp_path, start_worker=False) as r:
        version = deployment.version_of(build(r.settings, "nobody", "1").deployment)
        assert version
        with pytest.raises(TurnwrightError) as caught:
            await deployment.set_current(r.client, version, ["nowhere"])
    assert caught.value.code == Code.WORKER_NOT_CURRENT


async def test_jobs_and_functions_follow_the_version(tmp_path: Path) -> None:
    """A function runtime waits on the functions queue of the turns' family, a job on the turns' queue."""
    name = f"family-{uuid.uuid4().hex[:8]}"
    packages = {
        "before": function(DONE),
        "tale": STORY,
        "later": function(DONE, stage="post-turn, detached: { settle: true }", extra="  effects: {}\n"),
    }
    async with rig(
        tmp_path, packages=packages, model=ModelServer([Reply(text="One.")]), start_worker=False
    ) as r:
        with worker_process(build(r.settings, name, "1"), tmp_path) as process:
            await until_ready(process, tmp_path)
            session = await r.session(packages=sorted(packages))
            result = await session.play("I look up.")
            assert {run["runtime_id"]: run["status"] for run in result["runs"]}["before"] == "success"
            [job] = result["jobs"]
            handle = r.client.get_workflow_handle(f"job/{job['job_id']}")
            await session.until(lambda state: not state["jobs"])
            assert (await handle.result())["status"] == "succeeded"
            assert await ran_on(r.client, handle.id) == ("1", PINNED)
