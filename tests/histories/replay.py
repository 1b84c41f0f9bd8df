"""Replays histories: `python -m tests.histories.replay` does it in a process of its own.

The order of a set differs from process to process, so CI starts this under several `PYTHONHASHSEED`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

import worker
from link.converter import data_converter
from link.exit import leave
from link.interceptors import WireInterceptor
from link.runtime import shared_runtime
from link.settings import load_settings
from tests.histories import digests

WORKFLOWS = [worker.SessionWorkflow, worker.TurnWorkflow, worker.AgentWorkflow, worker.JobWorkflow]

_DEFINITION = "__temporal_workflow_definition"


def runners() -> dict[str, WorkflowRunner]:
    """The runner of tests and the runner of production."""
    passed = SandboxRestrictions.default.with_passthrough_modules(*worker.PASSED_THROUGH)
    return {
        "sandboxed": SandboxedWorkflowRunner(restrictions=passed),
        "unsandboxed": UnsandboxedWorkflowRunner(),
    }


async def faults(histories: Iterable[WorkflowHistory], runner: WorkflowRunner) -> dict[str, str]:
    """What replay refuses, by workflow and run id."""
    replayer = Replayer(
        workflows=WORKFLOWS,
        data_converter=data_converter(load_settings({})),
        interceptors=[WireInterceptor()],
        workflow_runner=runner,
        runtime=shared_runtime(),
    )
    found: dict[str, str] = {}
    with _strict():
        for history in histories:
            result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
            if result.replay_failure:
                found[f"{history.workflow_id} {history.run_id}"] = str(result.replay_failure)
    return found


@contextmanager
def _strict() -> Iterator[None]:
    """Definitions under which an exception fails the task, and so the replay.

    As they are, turns, agents and jobs declare every exception a failure of the workflow, another order of
    commands too: the replayer would wait for a refusal that never comes.
    """
    kept = {cls: workflow._Definition.must_from_class(cls) for cls in WORKFLOWS}
    for cls, definition in kept.items():
        setattr(cls, _DEFINITION, dataclasses.replace(definition, failure_exception_types=()))
    try:
        yield
    finally:
        for cls, definition in kept.items():
            setattr(cls, _DEFINITION, definition)


async def _all() -> int:
    wrong = 0
    for name, runner in runners().items():
        refused = await faults(digests.recorded().values(), runner)
        wrong += len(refused)
        for which, why in refused.items():
            print(f"{name}: {which}: {why}")
    return wrong


if __name__ == "__main__":
    leave(min(asyncio.run(_all()), 1))
