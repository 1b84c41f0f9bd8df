"""Says why a workflow does not answer: it is unknown, over, stuck, or nobody works for it.

A call without an answer looks the same in all four cases; three cheap questions to the server tell them
apart (DESIGN §6, "Watching for stalls").
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import (
    EventType,
    PendingActivityState,
    PendingWorkflowTaskState,
    TaskQueueType,
    WorkflowTaskFailedCause,
)
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from client import failures
from kernel.errors import Code, TurnwrightError
from kernel.wire.ids import parse_workflow_id
from kernel.wire.names import functions_queue

RPC: Final = timedelta(seconds=3)
"""Bound of every question asked here."""

START_A_WORKER: Final = "a running worker; `turnwright worker` starts one, `turnwright dev` all there is"
LASTING_S: Final = 8.0
"""Seconds that work must lie untaken while somebody waits: a worker that starts again takes a few."""

FRESH_S: Final = 75.0
"""Seconds since its last poll after which a poller counts as gone: a long poll lasts one minute."""

EndWithoutResult = Literal["stopped", "failed", "terminated"]

_ENDS: Final[dict[WorkflowExecutionStatus, EndWithoutResult]] = {
    WorkflowExecutionStatus.CANCELED: "stopped",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.TIMED_OUT: "failed",
    WorkflowExecutionStatus.TERMINATED: "terminated",
}
_PAGE: Final = 20
_TIMED_OUT_OFTEN: Final = 3
"""Time-outs in a row that are no longer one worker's death, which the next worker makes good."""
_TROUBLE: Final = (EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED, EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)


@dataclass(frozen=True)
class Task:
    """The workflow task that is pending.

    Attributes:
        scheduled: when it was first put on its queue, as the server wrote it.
        waiting: no worker has taken it.
    """

    attempt: int
    waiting: bool
    scheduled: int


@dataclass(frozen=True)
class Sight:
    """A workflow as the server describes it.

    Attributes:
        failing: how often an activity that fails was tried, and what it failed with last.
        idle_activity: an activity that no worker has taken, with its attempt.
        children: workflow ids of children that run.
    """

    workflow_id: str
    running: bool
    status: WorkflowExecutionStatus | None
    queue: str
    task: Task | None
    failing: tuple[int, str] | None = None
    idle_activity: str = ""
    children: tuple[str, ...] = ()


async def look(client: Client, workflow_id: str) -> Sight:
    """Describe a workflow.

    Raises:
        TurnwrightError: `session.unknown`, `turn.unknown` or `server.unreachable`.
    """
    try:
        found = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC)
    except TemporalError as error:
        raise failures.named(error, workflow_id) from None
    return _sight(found)


async def diagnose(client: Client, workflow_id: str) -> TurnwrightError | None:
    """Why a workflow gave no answer to a caller who has waited; None when it looks healthy."""
    try:
        sight = await look(client, workflow_id)
        if not sight.running:
            return await ended(client, sight)
        return await _judge(client, sight, lasting=True)
    except TemporalError as error:
        return failures.named(error, workflow_id)


class Watch:
    """Looks after a workflow and its children while somebody waits for its result.

    Only what lasts is trouble: a worker may die, and another take over or the same start again.
    """

    def __init__(self, client: Client, workflow_id: str) -> None:
        self._client = client
        self._workflow_id = workflow_id
        self._since: dict[str, float] = {}

    async def check(self) -> TurnwrightError | None:
        """What keeps the workflow from going on, if anything does."""
        seen: dict[str, float] = {}
        try:
            sight = await look(self._client, self._workflow_id)
            for workflow_id in (self._workflow_id, *sight.children):
                if problem := await self._problem(await look(self._client, workflow_id), seen):
                    return problem
        except (TurnwrightError, TemporalError):
            return None  # the waiting call itself tells about an outage or a workflow that went away
        finally:
            self._since = seen
        return None

    async def _problem(self, sight: Sight, seen: dict[str, float]) -> TurnwrightError | None:
        if not sight.running:
            return None
        if sight.task is not None:
            lasting = self._lasts(f"{sight.workflow_id} {sight.task.scheduled}", seen)
            return await _judge(self._client, sight, lasting=lasting)
        if sight.idle_activity and self._lasts(f"{sight.workflow_id} {sight.idle_activity}", seen):
            for queue in (sight.queue, functions_queue(sight.queue)):
                if not await polled(self._client, queue, activities=True):
                    return absent(replace(sight, queue=queue), "nobody polls")
        return None

    def _lasts(self, what: str, seen: dict[str, float]) -> bool:
        seen[what] = self._since.get(what, time.monotonic())
        return time.monotonic() - seen[what] >= LASTING_S


async def ended(client: Client, sight: Sight) -> TurnwrightError:
    """The refusal of a message to a workflow that is over, with what it ended of."""
    ref = parse_workflow_id(sight.workflow_id)
    kind = ref.kind if ref else "workflow"
    if sight.status == WorkflowExecutionStatus.COMPLETED:
        code = Code.SESSION_ENDED if kind == "session" else Code.TURN_UNKNOWN
        message, accepted = f"the {kind} has ended", "another session" if kind == "session" else ""
        return TurnwrightError(code, message, where=sight.workflow_id, accepted=accepted)
    cause = await _end_cause(client, sight.workflow_id)
    return TurnwrightError(
        Code.SESSION_ENDED if kind == "session" else Code.WORKFLOW_FAILED,
        f"the {kind} is over: {cause}",
        where=sight.workflow_id,
        accepted="`turnwright session new` with this id again, or another session"
        if kind == "session"
        else "",
    )


async def end_without_result(client: Client, workflow_id: str) -> EndWithoutResult | None:
    """How a turn ended that could not say so itself; None while it runs, or when its result stands.

    Raises:
        TurnwrightError: as `look`.
    """
    status = (await look(client, workflow_id)).status
    return None if status is None else _ENDS.get(status)


async def polled(client: Client, queue: str, *, activities: bool = False) -> bool:
    """Whether any worker has polled a queue lately; a worker that died counts for about a minute."""
    kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY if activities else TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    try:
        reply = await client.workflow_service.describe_task_queue(request, timeout=RPC)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return False
        raise
    return any(time.time() - poller.last_access_time.ToSeconds() < FRESH_S for poller in reply.pollers)


def absent(sight: Sight, what: str) -> TurnwrightError:
    """The refusal when no worker does the work."""
    return TurnwrightError(
        Code.WORKER_ABSENT,
        f"{what} the task queue {sight.queue!r}",
        where=sight.workflow_id,
        accepted=START_A_WORKER,
    )


def stuck(workflow_id: str, cause: str, attempt: int) -> TurnwrightError:
    """The refusal when a workflow's task fails again and again."""
    return TurnwrightError(
        Code.WORKFLOW_STUCK,
        f"its workflow task fails, attempt {attempt}: {cause}",
        where=workflow_id,
        accepted="a worker of the version that wrote its history; `turnwright doctor` says more",
    )


async def _judge(client: Client, sight: Sight, *, lasting: bool) -> TurnwrightError | None:
    task = sight.task
    if task is None:
        return None
    if lasting and task.waiting and not await polled(client, sight.queue):
        return absent(sight, "nobody polls")
    if task.attempt > 1 and (event := await _last_trouble(client, sight.workflow_id)):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            return stuck(sight.workflow_id, await _cause(client, event), task.attempt)
        if task.attempt > _TIMED_OUT_OFTEN:
            cause = "the worker that takes it does not answer in time"
            return stuck(sight.workflow_id, cause, task.attempt)
    # A worker that died is listed as a poller for another minute: an untaken task says more.
    return absent(sight, "nobody takes tasks from") if lasting and task.waiting else None


async def _last_trouble(client: Client, workflow_id: str) -> HistoryEvent | None:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id),
        maximum_page_size=_PAGE,
    )
    try:
        reply = await client.workflow_service.get_workflow_execution_history_reverse(request, timeout=RPC)
    except RPCError:
        return None
    return next((event for event in reply.history.events if event.event_type in _TROUBLE), None)


async def _cause(client: Client, event: HistoryEvent) -> str:
    attributes = event.workflow_task_failed_event_attributes
    name = WorkflowTaskFailedCause.Name(attributes.cause).removeprefix("WORKFLOW_TASK_FAILED_CAUSE_")
    said = str(await client.data_converter.decode_failure(attributes.failure))
    return f"{name.lower().replace('_', ' ')}: {said[:300]}"


async def _end_cause(client: Client, workflow_id: str) -> str:
    try:
        await client.get_workflow_handle(workflow_id).result(rpc_timeout=RPC)
    except WorkflowFailureError as error:
        found = failures.named(error, workflow_id)
        return f"{found.code}: {found.message}"
    except TemporalError as error:
        return str(error)
    return "it has completed"


def _sight(found: WorkflowExecutionDescription) -> Sight:
    raw = found.raw_description
    pending = raw.pending_workflow_task if raw.HasField("pending_workflow_task") else None
    tried = sorted((a.attempt, a.last_failure.message) for a in raw.pending_activities if a.attempt > 1)
    scheduled = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
    idle = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    task = None
    if pending:
        since = pending.original_scheduled_time.ToNanoseconds()
        task = Task(pending.attempt, pending.state == scheduled, since)
    return Sight(
        workflow_id=found.id,
        running=found.status == WorkflowExecutionStatus.RUNNING,
        status=found.status,
        queue=found.task_queue,
        task=task,
        failing=tried[-1] if tried else None,
        idle_activity=next(
            (f"{a.activity_id} {a.attempt}" for a in raw.pending_activities if a.state == idle), ""
        ),
        children=tuple(child.workflow_id for child in raw.pending_children),
    )
