"""A workflow task that keeps failing: whoever waits hears why, and the server's own list shows it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from client.api import Turnwright
from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from kernel.wire.ids import session_workflow
from link.interceptors import WireInterceptor
from tests.support.rig import rig
from tests.support.temporal import unique_queue

pytestmark = pytest.mark.slow

REPORTED = SearchAttributeKey.for_keyword_list("TemporalReportedProblems")


@workflow.defn(name=names.SESSION)
class BrokenSession:
    """A build with a defect: its task fails however often it is tried."""

    @workflow.run
    async def run(self, input: dict[str, object] | None = None) -> None:
        raise ValueError("the glass harp is broken")


async def test_waiting_client_hears_why_a_session_is_stuck(tmp_path: Path) -> None:
    async with rig(tmp_path, start_worker=False) as r:
        broken = Worker(
            r.client,
            task_queue=r.settings.temporal.queue,
            workflows=[BrokenSession],
            interceptors=[WireInterceptor()],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        session_id = unique_queue("s")
        async with broken, await Turnwright.connect(r.settings) as turnwright:
            for ask in (turnwright.new_session(session_id, []), turnwright.submit(session_id, "Hello?")):
                with pytest.raises(TurnwrightError) as caught:
                    await ask
                assert caught.value.code == Code.WORKFLOW_STUCK
                assert caught.value.where == session_workflow(session_id)
                assert "the glass harp is broken" in caught.value.message
            handle = r.client.get_workflow_handle(session_workflow(session_id))
            async with asyncio.timeout(60):
                while not (await handle.describe()).typed_search_attributes.get(REPORTED):
                    await asyncio.sleep(0.1)
            problems = (await handle.describe()).typed_search_attributes.get(REPORTED)
            assert any("category=WorkflowTaskFailed" in problem for problem in problems or ())
        await handle.terminate("the test is over")
