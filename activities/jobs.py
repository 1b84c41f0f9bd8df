"""`reconcile_jobs`: ask Temporal how jobs stand that should have reported."""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.heartbeat import beating
from kernel.wire import names
from kernel.wire.ids import job_workflow
from kernel.wire.session import ReconciledJobs, ReconcileJobs
from store import jobs
from store.engine import Store


class JobActivities:
    """Looks after jobs that died silently."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._client = client

    @activity.defn(name=names.RECONCILE_JOBS)
    async def reconcile_jobs(self, request: ReconcileJobs) -> ReconciledJobs:
        """The jobs of the question that no longer run; the store is told too."""
        async with beating():
            ended = {job_id: how for job_id in request.job_ids if (how := await self._end_of(job_id))}
            async with self._store.write() as conn:
                for job_id, how in sorted(ended.items()):
                    await jobs.end(conn, job_id, status="failed", reason="workflow.failed", message=how)
        return ReconciledJobs(ended=ended)

    async def _end_of(self, job_id: str) -> str | None:
        try:
            found = await self._client.get_workflow_handle(job_workflow(job_id)).describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return "its workflow does not exist"
            raise
        if found.status == WorkflowExecutionStatus.RUNNING:
            return None
        return f"its workflow is {found.status.name.lower()}" if found.status else None
