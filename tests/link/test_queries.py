"""A query in the middle of a local activity changes no order: what ran replays.

Without `link.queries` nearly every run of this workflow breaks here: a marker then stands one workflow task
before the one in which the code met the result.
"""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import (
    Replayer,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)

from link.queries import QueriesLast
from tests.support.temporal import shared_dev_server, unique_queue

pytestmark = pytest.mark.slow

SECONDS = timedelta(seconds=5)
WORK = 0.02
"""What a handler and a local activity take, in seconds: long enough to meet each other."""


@activity.defn(name="write")
async def write(number: int) -> int:
    await asyncio.sleep(WORK * (1 + number % 3) / 2)
    return number


@workflow.defn(name="Ledger")
class Ledger:
    """Writes what it hears, and rests when it has heard nothing new: the order of both decides."""

    def __init__(self) -> None:
        self._heard: list[int] = []
        self._written = 0

    @workflow.run
    async def run(self, count: int) -> int:
        while self._written < count:
            await workflow.wait_condition(lambda: bool(self._heard))
            await workflow.execute_local_activity(write, self._heard.pop(0), start_to_close_timeout=SECONDS)
            self._written += 1
            if not self._heard:
                await workflow.sleep(0.01)
        return self._written

    @workflow.signal
    def hear(self, number: int) -> None:
        time.sleep(WORK)
        self._heard.append(number)

    @workflow.query
    def written(self) -> int:
        time.sleep(WORK)
        return self._written


class Watched(WorkflowRunner):
    """Notes the queries that an instance gets while it has a local activity."""

    def __init__(self, runner: WorkflowRunner) -> None:
        self.runner = runner
        self.met = 0

    def prepare_workflow(self, defn: Any) -> None:
        self.runner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = self.runner.create_instance(det)
        activate, running = instance.activate, set[int]()

        def watched(act: Any) -> Any:
            self.met += bool(running and any(job.HasField("query_workflow") for job in act.jobs))
            running.difference_update(
                job.resolve_activity.seq for job in act.jobs if job.HasField("resolve_activity")
            )
            completion = activate(act)
            running.update(
                command.schedule_local_activity.seq
                for command in completion.successful.commands
                if command.HasField("schedule_local_activity")
            )
            return completion

        setattr(instance, "activate", watched)  # noqa: B010
        return instance


async def test_a_query_during_a_local_activity_waits_and_its_run_replays() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    client, queue = await Client.connect(shared_dev_server()), unique_queue("ledger")
    inside = Watched(UnsandboxedWorkflowRunner())
    outside = Watched(QueriesLast(inside))
    async with Worker(
        client, task_queue=queue, workflows=[Ledger], activities=[write], workflow_runner=outside
    ):
        ids = await asyncio.gather(
            *(play(client, queue, random.Random(f"{seed} {number}")) for number in range(6))
        )
    assert outside.met > 0, "no query ever met a local activity"
    assert inside.met == 0
    replayer = Replayer(workflows=[Ledger], workflow_runner=UnsandboxedWorkflowRunner())
    for workflow_id in ids:
        history = await client.get_workflow_handle(workflow_id).fetch_history()
        replayed = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        assert replayed.replay_failure is None


async def play(client: Client, queue: str, rng: random.Random) -> str:
    """Signals and queries at once, until the workflow has written all; its id."""
    count = 10
    handle = await client.start_workflow("Ledger", count, id=unique_queue("ledger"), task_queue=queue)

    async def ask() -> None:
        while await handle.query("written") < count:
            pass

    askers = [asyncio.create_task(ask()) for _ in range(3)]
    for number in range(count):
        await asyncio.sleep(rng.random() * 4 * WORK)
        await handle.signal("hear", number)
    assert await handle.result() == count
    await asyncio.gather(*askers)
    return handle.id
