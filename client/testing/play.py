"""One case: a session of its own, one turn or manual run, and what is left of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from uuid import uuid4

from client.testing.plan import Plan, Planned
from client.testing.stand import Stand
from kernel.errors import Code, TurnwrightError
from kernel.manifest.cases import ScriptedReply
from kernel.manifest.verdicts import Ended, Observed, verdict
from kernel.wire.turn import TurnResult
from store import data, events
from store.jobs import OPEN, Job

MESSAGE: Final = "I look around."
"""What the player does in a case that does not say."""

_JOB_STATUS: Final = {"succeeded": "success"}
_JOBS_S: Final = 120.0
_MOST_RECORDS: Final = 1_000


@dataclass(frozen=True)
class Report:
    """What came of a case. Spec: plugin-model §31.

    Attributes:
        problems: what was expected and did not come, and failures that nobody expected; empty when it passed.
        pending_deferred_followers: jobs that had not ended when the case was given up.
        unsupported_capabilities: what the package asks for and this version has not.
        prompts: the model's calls of the runtime under test: request and reply.
    """

    name: str
    runtime_id: str
    seconds: float
    problems: tuple[str, ...]
    commit_status: str
    commit_error: str = ""
    runtime_results: tuple[dict[str, str], ...] = ()
    plugin_data: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    jobs: tuple[dict[str, str], ...] = ()
    pending_deferred_followers: tuple[str, ...] = ()
    unsupported_capabilities: tuple[str, ...] = ()
    prompts: tuple[dict[str, Any], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the case came out as expected."""
        return not self.problems


async def play(stand: Stand, plan: Plan, planned: Planned) -> Report:
    """Play a case. Whatever goes wrong in it is a problem of its report."""
    began = time.monotonic()
    heard = len(stand.worker.log.text())
    try:
        await stand.script(_script(planned))
        session_id = await _session(stand, plan, planned)
        result = await _result(stand, session_id, planned)
        jobs = await _jobs(stand, session_id)
        observed = await _observed(stand, plan, session_id, result, jobs, heard)
    except TurnwrightError as error:
        unsupported = (error.account,) if error.code == Code.PACKAGE_UNSUPPORTED else ()
        return Report(
            name=planned.case.name,
            runtime_id=planned.runtime.id,
            seconds=time.monotonic() - began,
            problems=(str(error),),
            commit_status="failed",
            commit_error=str(error),
            unsupported_capabilities=unsupported,
        )
    return Report(
        name=planned.case.name,
        runtime_id=planned.runtime.id,
        seconds=time.monotonic() - began,
        problems=verdict(planned.case, observed, planned.runtime.id),
        commit_status=observed.commit_status,
        commit_error=observed.commit_error,
        runtime_results=tuple(
            {"runtimeId": name, **{key: value for key, value in asdict(run).items() if value}}
            for name, run in sorted(observed.runs.items())
        ),
        plugin_data={name: dict(records) for name, records in observed.data.items()},
        events=observed.events,
        jobs=tuple({"runtimeId": job.runtime_id, "status": job.status} for job in jobs),
        pending_deferred_followers=tuple(job.runtime_id for job in jobs if job.status in OPEN),
        prompts=tuple(call for call in await stand.asked() if call["runtime"] == planned.runtime.id),
    )


def _script(planned: Planned) -> dict[str, list[dict[str, Any]]]:
    replies = planned.case.replies
    return {} if replies is None else {planned.runtime.id: [_reply(reply) for reply in replies]}


def _reply(reply: ScriptedReply) -> dict[str, Any]:
    return reply.model_dump(mode="json", by_alias=True, exclude_none=True)


async def _session(stand: Stand, plan: Plan, planned: Planned) -> str:
    session_id = f"case-{uuid4().hex[:12]}"
    names = [plan.package.id, *(folder.resolve().name for folder in planned.others)]
    view = await stand.client.new_session(session_id, names)
    for notice in view.notices:
        raise TurnwrightError(notice.code, notice.message)
    if planned.case.user_settings:
        await stand.client.configure(session_id, settings={plan.package.id: planned.case.user_settings})
    return session_id


async def _result(stand: Stand, session_id: str, planned: Planned) -> TurnResult:
    case, client = planned.case, stand.client
    trigger = planned.runtime.manifest.schedule.trigger
    if trigger is not None and trigger.type == "manual":
        receipt = await client.run(session_id, planned.runtime.id, case.payload)
    else:
        receipt = await client.submit(session_id, case.message or MESSAGE, payload=case.payload)
    return await client.wait(receipt)


async def _jobs(stand: Stand, session_id: str) -> list[Job]:
    """The jobs that the turn left, once they have ended."""
    deadline = time.monotonic() + _JOBS_S
    while True:
        jobs = await stand.client.jobs(session_id)
        if not any(job.status in OPEN for job in jobs) or time.monotonic() > deadline:
            return jobs
        await asyncio.sleep(0.05)


async def _observed(
    stand: Stand, plan: Plan, session_id: str, result: TurnResult, jobs: list[Job], heard: int
) -> Observed:
    runs = {run.runtime_id: Ended(run.status, run.reason, run.message) for run in result.runs}
    for job in jobs:
        runs[job.runtime_id] = Ended(_JOB_STATUS.get(job.status, "failed"), job.reason, job.message)
    found: dict[str, dict[str, Any]] = {}
    async with stand.client.history.store.read() as conn:
        for namespace in plan.package.manifest.contributes.data:
            page = await data.list_records(conn, session_id, plan.package.id, namespace, limit=_MOST_RECORDS)
            found[namespace] = {record.key: record.value for record in page.records}
        topics = [event.topic for event in await events.list_events(conn, session_id)]
    return Observed(
        commit_status=result.status,
        commit_error=": ".join(filter(None, (result.reason, result.message))),
        runs=runs,
        events=tuple(topics),
        logs=stand.worker.log.text()[heard:],
        data=found,
    )
