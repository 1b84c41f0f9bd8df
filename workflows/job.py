"""One detached run: it outlives its turn, commits by itself and reports its end to Session."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError, TimeoutError, TimeoutType

with workflow.unsafe.imports_passed_through():
    from kernel.wire import names
    from kernel.wire.ids import session_workflow
    from kernel.wire.signals import Report
    from kernel.wire.turn import CommitJob, JobInput, JobRef, JobResult, RunFunction, RunResult

from workflows import attributes, effects


@workflow.defn(name=names.JOB, failure_exception_types=[Exception])
class JobWorkflow:
    """A detached function runtime of a committed turn. Spec: plugin-model §18."""

    @workflow.init
    def __init__(self, input: JobInput | None = None) -> None:
        self._input = input or JobInput(
            session_id="", incarnation="", job=JobRef(job_id="", turn_id="", runtime_id="")
        )

    @workflow.run
    async def run(self, input: JobInput | None = None) -> JobResult:
        """Run, commit, report; a failed run commits nothing and reports too."""
        job = self._input.job
        workflow.set_current_details(f"`{job.runtime_id}` of turn `{job.turn_id}`")
        ran = await self._execute()
        result = await self._commit(ran)
        attributes.status(result.status)
        await self._report(result)
        return result

    async def _execute(self) -> RunResult:
        job = self._input.job
        call = RunFunction(
            session_id=self._input.session_id,
            turn_id=job.turn_id,
            runtime_id=job.runtime_id,
            job_id=job.job_id,
            timeout_ms=job.max_execution_ms,
        )
        try:
            return await effects.run_function(
                call,
                RunResult,
                f"{job.runtime_id} · job",
                timeout=timedelta(milliseconds=job.max_execution_ms),
                queue_timeout=timedelta(milliseconds=job.max_queue_ms),
            )
        except ActivityError as error:
            if effects.is_cancelled(error):
                return RunResult(status="failed", reason="cancelled", message="the job was cancelled")
            failure = effects.failure_of(error)
            queued = (
                isinstance(error.cause, TimeoutError) and error.cause.type == TimeoutType.SCHEDULE_TO_START
            )
            message = "no worker took the job in time" if queued else failure.message
            return RunResult(status="failed", reason=failure.code, message=message)

    async def _commit(self, ran: RunResult) -> JobResult:
        job = self._input.job
        commit = CommitJob(
            session_id=self._input.session_id,
            incarnation=self._input.incarnation,
            job_id=job.job_id,
            turn_id=job.turn_id,
            runtime_id=job.runtime_id,
            result=ran,
        )
        return await effects.commit(names.COMMIT_JOB, commit, JobResult, f"{job.runtime_id} · commit")

    async def _report(self, result: JobResult) -> None:
        session = workflow.get_external_workflow_handle(session_workflow(self._input.session_id))
        status = (
            result.status
            if result.status in {"succeeded", "failed", "timed_out", "cancelled", "stale"}
            else "failed"
        )
        try:
            await session.signal(names.REPORT, Report(job_ended=result.job_id, job_status=status))
        except FailureError as error:
            workflow.logger.info("session of job %s is over: %s", result.job_id, error)
