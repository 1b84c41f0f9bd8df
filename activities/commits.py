"""`commit_turn` and `commit_job`: everything a run wanted to change, in one transaction.

Prepared outside; then the session's row is locked, incarnation and status are checked, and the receipt
decides: a repeated activity finds it, a late one meets it (DESIGN §4, rules 7 and 8). Spec: plugin-model §20.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.apply import Applier
from activities.generations import Generation, Generations
from activities.heartbeat import beating
from kernel.binding import story_text
from kernel.commit.plan import Refusal, Rejected, RunCommit, StagedRun, check_job, check_story, prepare
from kernel.errors import Code, TurnwrightError
from kernel.schedule import Graph, build, cascade
from kernel.wire import budgets, names
from kernel.wire.base import Json, outline
from kernel.wire.ids import job_id_for
from kernel.wire.turn import (
    CommitJob,
    CommitTurn,
    DetachedPlan,
    JobRef,
    JobResult,
    RunOutcome,
    Story,
    TurnResult,
)
from kernel.wire.usage import UsageTotals
from store import calls, jobs, messages, runs, sessions, stream, turns
from store.connection import Connection
from store.engine import Store, savepoint
from store.sessions import Session

LOCAL_PROPOSALS = 200
"""Most proposals that a local activity commits (DESIGN §3, item 7)."""

STORY_BYTES = 8 * 1024
"""Longest story text, and longest output of a manual run, that a turn's result carries whole."""


class CommitActivities:
    """Commits turns and jobs."""

    def __init__(self, store: Store, generations: Generations) -> None:
        self._store = store
        self._generations = generations

    @activity.defn(name=names.COMMIT_TURN)
    async def commit_turn(self, commit: CommitTurn) -> TurnResult | None:
        """Commit, reject or stop a turn, once; a repeat answers with the receipt.

        Returns:
            None, with nothing changed, when there is too much to commit for a local activity.
        """
        generation = await self._generations.of(commit.turn_id)
        async with self._store.read() as conn:
            if receipt := await _receipt(conn, commit.turn_id):
                return receipt
            usage = await calls.totals_of_owner(conn, commit.turn_id)
        if commit.stopped is not None:
            return await self._close(commit, generation, usage, "stopped", Code.TURN_STOPPED, commit.stopped)
        try:
            async with beating():
                return await self._commit(commit, generation, usage)
        except Rejected as error:
            return await self._close(commit, generation, usage, "rejected", error.code, error.message)

    @activity.defn(name=names.COMMIT_JOB)
    async def commit_job(self, commit: CommitJob) -> JobResult | None:
        """Commit what a job staged, or record how it failed; a repeat answers what was recorded.

        Returns:
            None, with nothing changed, when there is too much to commit for a local activity.
        """
        async with beating(), self._store.write() as conn:
            session = await sessions.lock(conn, commit.session_id)
            job = await jobs.get(conn, commit.job_id)
            if job is None:
                raise TurnwrightError(Code.STORE_CONFLICT, f"job {commit.job_id} is not recorded")
            # The ledger, not the run's result: a run that was cancelled or given up brings none.
            usage = (await calls.totals_of_owner(conn, commit.job_id)).model_dump(mode="json")
            if job.ended_at is None:
                ended = await self._end_job(conn, session, commit)
                if ended is None:
                    return None
                status, reason, message = ended
                await jobs.end(
                    conn, commit.job_id, status=status, reason=reason, message=message, usage=usage
                )
                job = await jobs.get(conn, commit.job_id)
                assert job is not None
        used = UsageTotals.model_validate(job.usage or usage)
        given = {"reason": job.reason, "message": job.message, "usage": used if used.calls else None}
        kept = {name: value for name, value in given.items() if value}
        return JobResult(job_id=job.job_id, status=job.status, **kept)

    async def _end_job(
        self, conn: Connection, session: Session, commit: CommitJob
    ) -> tuple[str, str, str] | None:
        result = commit.result
        if session.incarnation != commit.incarnation or session.status == "ended":
            return "stale", Code.SESSION_STALE, "the session ended or started anew"
        if result.status == "skipped":
            return "succeeded", result.reason, result.message
        if result.status != "success":
            status = {"cancelled": "cancelled", Code.RUNTIME_TIMEOUT: "timed_out"}.get(
                result.reason, "failed"
            )
            return status, result.reason, result.message
        try:
            run = [commit.runtime_id]
            outputs = await runs.get_outputs(conn, commit.job_id, run)
            staged = await self._staged(conn, commit.turn_id, commit.job_id, run, outputs)
            if _too_large(staged):
                return None
            for staged_run in staged:
                check_job(staged_run)
            prepared = prepare(staged)
            applier = Applier(conn, commit.session_id, commit.turn_id)
            async with savepoint(conn):
                for job_run in prepared.commits:
                    await applier.apply(job_run)
        except Rejected as error:
            return "failed", error.code, outline(error.message)
        except TurnwrightError as error:
            return "failed", error.code, outline(error.account)
        return "succeeded", "", ""

    async def _commit(
        self, commit: CommitTurn, generation: Generation, usage: UsageTotals
    ) -> TurnResult | None:
        graph = build(generation.plan)
        stories = [plan.runtime_id for plan in generation.plan.runtimes if plan.story]
        succeeded = [run.runtime_id for run in commit.runs if run.status == "success"]
        async with self._store.read() as conn:
            outputs = await runs.get_outputs(conn, commit.turn_id, succeeded)
            staged = await self._staged(conn, commit.turn_id, commit.turn_id, succeeded, outputs)
        texts = {story: _text(outputs[story].output) for story in stories if story in outputs}
        check_story(commit.runs, stories, texts)
        if _too_large(staged):
            return None
        prepared = prepare(staged)
        async with self._store.write() as conn:
            session = await sessions.lock(conn, commit.session_id)
            if receipt := await _receipt(conn, commit.turn_id):
                return receipt
            _check_session(session, commit)
            transaction = _Transaction(conn, commit, generation, graph)
            await transaction.say_player()
            await transaction.apply(prepared.commits, prepared.refusals, texts)
            await transaction.queue_jobs()
            clock = await transaction.advance(session)
            result = transaction.result(clock, texts, outputs, usage)
            await save_receipt(conn, result)
            return result

    async def _close(
        self,
        commit: CommitTurn,
        generation: Generation,
        usage: UsageTotals,
        status: Any,
        code: Code,
        message: str,
    ) -> TurnResult:
        """Record a turn that changes nothing."""
        async with self._store.write() as conn:
            session = await sessions.lock(conn, commit.session_id)
            if receipt := await _receipt(conn, commit.turn_id):
                return receipt
            result = TurnResult(
                session_id=commit.session_id,
                turn_id=commit.turn_id,
                status=status,
                logical_turn=generation.logical_turn,
                completed_player_turns=session.completed_player_turns,
                reason=code,
                message=outline(message),
                runs=commit.runs,
                usage=usage,
            )
            await save_receipt(conn, result)
            return result

    async def _staged(
        self,
        conn: Connection,
        turn_id: str,
        owner_id: str,
        succeeded: Sequence[str],
        outputs: Mapping[str, runs.Run],
    ) -> list[StagedRun]:
        proposals: dict[str, list[Any]] = {}
        for row in await runs.list_staged(conn, owner_id, succeeded):
            proposals.setdefault(row.runtime_id, []).append(row.proposal)
        staged = []
        for runtime_id in succeeded:
            place = await self._generations.place(turn_id, runtime_id)
            io = place.runtime.manifest.io
            run = outputs.get(runtime_id)
            staged.append(
                StagedRun(
                    runtime_id=runtime_id,
                    package_id=place.package_id,
                    story=io.visibility == "story",
                    proposals=proposals.get(runtime_id, []),
                    output=run.output if run else None,
                    export=io.output.record_as,
                )
            )
        return staged


class _Transaction:
    """The writes of one turn, in their order."""

    def __init__(self, conn: Connection, commit: CommitTurn, generation: Generation, graph: Graph) -> None:
        self._conn = conn
        self._commit = commit
        self._generation = generation
        self._graph = graph
        self._applier = Applier(conn, commit.session_id, commit.turn_id)
        self._dropped: dict[str, Refusal] = {}
        self._jobs: list[JobRef] = []

    async def say_player(self) -> None:
        """Append the player's words before anything that answers them."""
        action = self._generation.action
        if self._commit.origin == "player" and action.text:
            await messages.append(
                self._conn,
                self._commit.session_id,
                turn_id=self._commit.turn_id,
                role="player",
                text=action.text,
            )

    async def apply(
        self, commits: Sequence[RunCommit], refusals: Sequence[Refusal], texts: dict[str, str]
    ) -> None:
        """Apply run after run; a refused one is dropped, and its hard dependants with it."""
        for refusal in refusals:
            self._drop(refusal)
        for run in commits:
            if run.run.runtime_id in self._dropped:
                continue
            try:
                async with savepoint(self._conn):
                    counts = await self._applier.apply(run, text=texts.get(run.run.runtime_id))
            except TurnwrightError as error:
                if not run.optional:
                    raise Rejected(error.code, error.account, run.run.runtime_id) from error
                self._drop(Refusal(run.run.runtime_id, error.code, error.account))
            else:
                self._applier.count(counts)

    async def queue_jobs(self) -> None:
        """Record the detached runs that a committed turn leaves."""
        for runtime_id in self._commit.deferred:
            if runtime_id in self._dropped:
                continue
            detached = self._graph.nodes[runtime_id].plan.detached or DetachedPlan()
            job = JobRef(
                job_id=job_id_for(self._commit.turn_id, runtime_id),
                turn_id=self._commit.turn_id,
                runtime_id=runtime_id,
                **detached.model_dump(exclude_unset=True),
            )
            committed = {run.runtime_id for run in self._outcomes() if run.status == "success"}
            upstream = [up for up in self._graph.ancestors(runtime_id) if up in committed]
            await jobs.create(
                self._conn,
                job_id=job.job_id,
                session_id=self._commit.session_id,
                turn_id=self._commit.turn_id,
                runtime_id=runtime_id,
                settle=job.settle,
                options={**job.model_dump(mode="json"), "upstream": upstream},
            )
            self._jobs.append(job)

    async def advance(self, session: Session) -> int:
        """Count a player's committed turn. Spec: plugin-model §2."""
        if self._commit.origin != "player":
            return session.completed_player_turns
        count = session.completed_player_turns + 1
        await sessions.update(self._conn, session.session_id, completed_player_turns=count)
        return count

    def result(
        self, clock: int, texts: dict[str, str], outputs: dict[str, runs.Run], usage: UsageTotals
    ) -> TurnResult:
        """The receipt."""
        manual = self._generation.plan.manual
        story = next(
            (_story(name, texts[name], position) for name, position in sorted(self._applier.told.items())),
            None,
        )
        given = {
            "story": story,
            "output": _small(outputs[manual].output) if manual and manual in outputs else None,
            "jobs": tuple(self._jobs),
        }
        return TurnResult(
            session_id=self._commit.session_id,
            turn_id=self._commit.turn_id,
            status="committed",
            logical_turn=self._generation.logical_turn,
            completed_player_turns=clock,
            runs=budgets.outcomes(self._outcomes()),
            committed=self._applier.counts,
            usage=usage,
            **{name: value for name, value in given.items() if value},
        )

    def _drop(self, refusal: Refusal) -> None:
        self._dropped[refusal.runtime_id] = refusal
        found = cascade(self._graph, self._commit.runs, self._dropped, self._commit.deferred)
        if found.rejects:
            raise Rejected(refusal.code, f"{refusal.runtime_id}: {refusal.message}", refusal.runtime_id)
        for drop in found.drops:
            self._dropped[drop.runtime_id] = Refusal(drop.runtime_id, Code.COMMIT_REJECTED, drop.message)

    def _outcomes(self) -> tuple[RunOutcome, ...]:
        return tuple(self._judged(run) for run in self._commit.runs)

    def _judged(self, run: RunOutcome) -> RunOutcome:
        """A dropped run counts as failed, with the reason of the drop."""
        refusal = self._dropped.get(run.runtime_id)
        if refusal is None or run.status != "success":
            return run
        message = outline(refusal.message)
        return RunOutcome(runtime_id=run.runtime_id, status="failed", reason=refusal.code, message=message)


def _too_large(staged: Sequence[StagedRun]) -> bool:
    return activity.info().is_local and sum(len(run.proposals) for run in staged) > LOCAL_PROPOSALS


async def _receipt(conn: Connection, turn_id: str) -> TurnResult | None:
    receipt = await turns.get_receipt(conn, turn_id)
    return None if receipt is None else TurnResult.model_validate(receipt)


async def save_receipt(conn: Connection, result: TurnResult) -> None:
    """End a turn with its receipt, and its live text with it."""
    await turns.close_turn(
        conn, result.turn_id, status=result.status, receipt=result.model_dump(mode="json", exclude_unset=True)
    )
    await stream.finish(conn, result.turn_id)


def _check_session(session: Session, commit: CommitTurn) -> None:
    if session.incarnation != commit.incarnation:
        raise Rejected(Code.SESSION_STALE, "the session started anew while the turn ran")
    if session.status == "ended":
        raise Rejected(Code.SESSION_ENDED, "the session has ended")


def _text(output: Json) -> str:
    segments = output.get("segments") if isinstance(output, dict) else None
    return story_text(segments) if isinstance(segments, list) else ""


def _story(runtime_id: str, text: str, position: int) -> Story:
    if len(text.encode()) <= STORY_BYTES:
        return Story(runtime_id=runtime_id, text=text)
    return Story(runtime_id=runtime_id, text=outline(text), complete=False, message_id=str(position))


def _small(output: Json) -> Json:
    return output if len(json.dumps(output, ensure_ascii=False).encode()) <= STORY_BYTES else None
