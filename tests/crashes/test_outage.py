"""A database that is away for days: what a session writes waits, and its history still has room."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio import activity, workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.support.temporal import time_skipping_environment, unique_queue
from workflows import effects

pytestmark = pytest.mark.slow

MOST_EVENTS = 51_200
"""A history that grows past this is terminated by the server."""


@workflow.defn(name="Outage")
class OutageWorkflow:
    """Waits for one write."""

    @workflow.run
    async def run(self) -> tuple[float, int]:
        """How long it took, in seconds, and the events that it cost."""
        began = effects.now()
        await effects.remember("write", None, bool, "write", patience=None)
        return effects.now() - began, workflow.info().get_current_history_length()


class Database:
    """Is away for this many attempts."""

    def __init__(self, attempts: int) -> None:
        self.left = attempts

    @activity.defn
    async def write(self, _nothing: None) -> bool:
        """A write of the store."""
        if self.left:
            self.left -= 1
            raise ConnectionError("the database is away")
        return True


async def outage(attempts: int) -> tuple[float, int]:
    """Seconds until a write succeeds that fails this often, and the events that it costs."""
    queue, database = unique_queue(), Database(attempts)
    async with time_skipping_environment() as environment:
        worker = Worker(
            environment.client,
            task_queue=queue,
            workflows=[OutageWorkflow],
            activities=[database.write],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        async with worker:
            return await environment.client.execute_workflow(OutageWorkflow.run, id=queue, task_queue=queue)


async def test_a_short_outage_is_over_soon_after_the_database_is_back() -> None:
    seconds, _ = await outage(15)
    assert seconds < 30


async def test_the_retries_of_a_week_fit_into_a_history() -> None:
    seconds, events = await outage(150)
    assert seconds > timedelta(hours=3).total_seconds()
    assert events * timedelta(weeks=1).total_seconds() / seconds < MOST_EVENTS
