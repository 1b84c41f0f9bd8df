"""Queries wait for local activities, so that replay meets the same order as the first run.

The SDK answers a query in the middle of a workflow task, also while a local activity runs. When that
activity ends in the same moment, the answer takes its marker to the server before workflow code has seen
the result: the code meets it in the next task, behind that task's signals, and replay meets it before
them. A workflow that decides by either then breaks on replay (temporalio 1.35.0).
A query that is not answered in one task is asked again by the server in the next.
"""

from __future__ import annotations

from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

_ALONE = "legacy_query"
"""The id of a query that comes as a task of its own: it waits for nothing, and carries no marker."""


class QueriesLast(WorkflowRunner):
    """Runs workflows as another runner does, and answers no query while a local activity runs.

    Give it to every worker: `Worker(…, workflow_runner=QueriesLast(UnsandboxedWorkflowRunner()))`.
    """

    def __init__(self, runner: WorkflowRunner) -> None:
        self._runner = runner

    def prepare_workflow(self, defn: Any) -> None:
        """As the other runner."""
        self._runner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """The other runner's instance, behind the rule of this module."""
        return _Instance(self._runner.create_instance(det))

    def set_worker_level_failure_exception_types(self, types: Any) -> None:
        """As the other runner."""
        self._runner.set_worker_level_failure_exception_types(types)


class _Instance(WorkflowInstance):
    def __init__(self, instance: WorkflowInstance) -> None:
        self._instance = instance
        self._running: set[int] = set()

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if self._running and act.jobs and all(map(_can_wait, act.jobs)):
            completion = WorkflowActivationCompletion()
            completion.successful.SetInParent()
            return completion
        for job in act.jobs:
            if job.HasField("resolve_activity") and job.resolve_activity.is_local:
                self._running.discard(job.resolve_activity.seq)
        completion = self._instance.activate(act)
        for command in completion.successful.commands:
            if command.HasField("schedule_local_activity"):
                self._running.add(command.schedule_local_activity.seq)
        return completion

    def get_serialization_context(self, command_info: Any) -> Any:
        return self._instance.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._instance.get_external_store_context(command_info)

    def get_info(self) -> Any:
        return self._instance.get_info()

    def get_thread_id(self) -> int | None:
        return self._instance.get_thread_id()


def _can_wait(job: Any) -> bool:
    return bool(job.HasField("query_workflow") and job.query_workflow.query_id != _ALONE)
