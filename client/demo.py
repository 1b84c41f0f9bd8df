"""The show: three turns of the bundled packages, printed as they happen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from client import running, show, stack
from client.api import Turnwright
from client.follow import Follower
from client.processes import START_S, ChildProcess, start_detached
from client.screen import Screen
from kernel.errors import Code, TurnwrightError
from kernel.wire.approvals import Approval
from kernel.wire.ids import job_workflow, session_workflow
from kernel.wire.session import Receipt
from kernel.wire.turn import JobRef, TurnResult
from kernel.wire.usage import UsageTotals
from link.settings import Settings
from store.jobs import Job

ACTIONS: Final = (
    "I wake in the lighthouse, climb the stairs and look out over the harbour.",
    "I swear to the keeper that I will light the lamp again. That is a milestone for us both.",
    "I carry the oil up the stairs and set the flame to the wick.",
)
"""The second names the word that makes the offline model ask for a gated tool."""

HONEST: Final = (
    "No language model is used: an offline stand-in answers over real HTTP, deterministically.",
    f"It is priced as if it cost {stack.PRICE_INPUT} / {stack.PRICE_OUTPUT} USD per million tokens in / out, "
    "to show the accounting; nothing is paid.",
)
Stage = tuple[Settings, Callable[[], Awaitable[TurnwrightError]]]
"""Settings to play with, and a wait for the moment when a part that they name ends by itself."""

_TURN_S: Final = 60.0
_JOB_S: Final = 40.0
_POLL_S: Final = 0.1


@dataclass(frozen=True)
class Played:
    """What the demo did. `running`: what it ran on, and what stays up with --keep."""

    session_id: str
    seconds: float
    turns: tuple[TurnResult, ...]
    usage: UsageTotals
    running: running.Running | None = None


async def play(settings: Settings, console: Console, *, keep: bool = False) -> Played:
    """Start everything, play three turns, stop everything.

    Raises:
        TurnwrightError: the cause when anything fails; nothing is left running then.
    """
    screen = Screen(console)
    began = time.monotonic()
    screen.line("Turnwright: three turns, from nothing", "bold")
    screen.lines(HONEST, "  ")
    screen.line()
    async with _stage(settings, screen, keep=keep) as (local, broken):
        played = asyncio.ensure_future(_play(local, screen, began))
        breaking = asyncio.ensure_future(broken())
        try:
            await asyncio.wait({played, breaking}, return_when=asyncio.FIRST_COMPLETED)
            if not played.done():
                raise breaking.result()
            return played.result()
        finally:
            for task in (played, breaking):
                task.cancel()
            await asyncio.gather(played, breaking, return_exceptions=True)


async def _play(settings: Settings, screen: Screen, began: float) -> Played:
    async with await Turnwright.connect(settings) as client:
        show_ = _Show(client, screen)
        total = await show_.run()
    took = round(time.monotonic() - began, 1)
    screen.line()
    screen.line(f"done in {took:.1f} s", "bold green")
    return Played(show_.session_id, took, tuple(show_.results), total, running.read(settings.home))


@asynccontextmanager
async def _stage(settings: Settings, screen: Screen, *, keep: bool) -> AsyncIterator[Stage]:
    """All parts, running: as children that end with the demo, or in a process that stays."""
    if not keep:
        async with stack.start(settings, offline=True, say=lambda text: screen.line(f"  {text}")) as parts:
            _address(screen, parts.server.ui_url)
            yield parts.settings, parts.broken
        return
    background = await start_detached(
        ["dev", "--offline", "--free-port"],
        log_file=settings.home / "dev.log",
        environ={**os.environ, **settings.to_env()},
    )
    try:
        note = await _note(settings, background)
        screen.line(f"  Temporal server, worker and offline model run under process {note.pid}")
        _address(screen, note.ui_url)
        yield stack.local_settings(settings, note.address, note.model_url), background.broken
    except BaseException:
        await background.close()
        raise
    screen.line()
    screen.line(f"Everything stays up. Stop it with: kill {note.pid}", "bold")
    screen.line(f"Other commands find it: TURNWRIGHT_HOME={settings.home} turnwright session list")


class _Show:
    def __init__(self, client: Turnwright, screen: Screen) -> None:
        self._client = client
        self._screen = screen
        self.results: list[TurnResult] = []
        self.session_id = f"demo-{time.strftime('%H%M%S')}-{os.getpid()}"

    async def run(self) -> UsageTotals:
        """Three turns; each goes to the session at once, which holds it until the jobs before it settled."""
        await self._client.new_session(self.session_id)
        summaries = {summary.session_id: summary for summary in await self._client.sessions()}
        packages = ", ".join(summaries[self.session_id].packages)
        self._screen.line(f"  session          {self.session_id} with {packages}")
        jobs: tuple[JobRef, ...] = ()
        for number, text in enumerate(ACTIONS, 1):
            self._screen.line()
            self._screen.line(f"Turn {number}: {text}", "bold")
            receipt = await self._client.submit(self.session_id, text)
            settled = [await self._settled(job) for job in jobs]
            self.results.append(await self._turn(receipt))
            jobs = self.results[-1].jobs
            await self._in_order(receipt, settled)
        for job in jobs:
            await self._settled(job)
        total = await self._client.history.usage(self.session_id)
        self._screen.line()
        self._screen.line(f"Session in total: {show.usage(total)}", "bold")
        with contextlib.suppress(TurnwrightError):  # it is shown and committed: nothing hangs on a tidy end
            await self._client.control(self.session_id, "end")
        return total

    async def _turn(self, receipt: Receipt) -> TurnResult:
        began = time.monotonic()
        follower = Follower(self._client, self.session_id, self._screen, self._approve)
        try:
            async with asyncio.timeout(_TURN_S):
                result = await follower.follow(receipt)
        except TimeoutError:
            message = f"the turn did not end within {_TURN_S:g} s"
            raise TurnwrightError(Code.RUNTIME_TIMEOUT, message, where=receipt.workflow_id) from None
        if result.status != "committed":
            message = f"the turn was {result.status}: {result.reason} {result.message}".rstrip()
            raise TurnwrightError(Code.TURN_REJECTED, message, where=receipt.workflow_id)
        failed = [run for run in result.runs if run.status == "failed"]
        if failed:
            run = failed[0]
            raise TurnwrightError(
                Code.RUNTIME_FAILED,
                f"{run.runtime_id} failed: {run.reason} {run.message}",
                where=receipt.workflow_id,
            )
        self._end(follower, result, time.monotonic() - began)
        return result

    def _end(self, follower: Follower, result: TurnResult, took_s: float) -> None:
        self._screen.line(f"  after {show.seconds(took_s)}, the turn as it ran:", "bold")
        if follower.view:
            self._screen.lines(show.tree(follower.view), "    ")
        self._screen.line(f"  committed: {show.committed(result.committed)}")
        self._screen.line(f"  usage:     {show.usage(result.usage)}")

    async def _approve(self, approval: Approval) -> None:
        """Answer by a plain signal, as any Temporal client can."""
        self._screen.line(f"    {show.approval_line(approval)}")
        workflow_id = session_workflow(self.session_id)
        answer = {"ref": approval.ref, "decision": "approve"}
        self._screen.line(
            f"    answered by the signal `resolve` to {workflow_id}: {json.dumps(answer)}", "dim"
        )
        await self._client.temporal.get_workflow_handle(workflow_id).signal("resolve", answer)

    async def _settled(self, job: JobRef) -> Job:
        """Wait until a detached run has ended."""
        self._screen.line(f"  ▸ job {job.runtime_id} runs detached, behind the commit of its turn")
        deadline = time.monotonic() + _JOB_S
        while (known := await self._client.history.job(job.job_id)) is None or known.ended_at is None:
            if time.monotonic() > deadline:
                message = f"the job {job.runtime_id} did not end within {_JOB_S:g} s"
                raise TurnwrightError(Code.RUNTIME_TIMEOUT, message, where=job_workflow(job.job_id))
            await asyncio.sleep(_POLL_S)
        if known.status != "succeeded":
            message = f"the job {job.runtime_id} {known.status}: {known.reason} {known.message}".rstrip()
            raise TurnwrightError(Code.RUNTIME_FAILED, message, where=job_workflow(job.job_id))
        self._screen.line(
            f"  ✓ job {job.runtime_id} settled after {show.seconds(known.ended_at - known.created_at)}"
        )
        return known

    async def _in_order(self, receipt: Receipt, settled: Sequence[Job]) -> None:
        """Say how long after the jobs the turn opened; before them would be a defect."""
        opened = (await self._client.turn(receipt.turn_id)).turn
        for job in settled:
            if opened is None or job.ended_at is None or opened.created_at < job.ended_at:
                message = f"the turn did not wait for the job {job.runtime_id}"
                raise TurnwrightError(Code.SESSION_SETTLE_TIMEOUT, message, where=receipt.workflow_id)
            gap = show.seconds(opened.created_at - job.ended_at)
            self._screen.line(f"  the turn opened {gap} after job {job.runtime_id} had settled", "dim")


async def _note(settings: Settings, background: ChildProcess) -> running.Running:
    """What the background process says it runs, once all of it does."""
    deadline = time.monotonic() + START_S
    while (note := running.read(settings.home)) is None or note.pid != background.pid:
        if background.status is not None:
            raise background.failed(f"ended with status {background.status}")
        if time.monotonic() > deadline:
            raise background.failed(f"was not ready within {START_S:g} s")
        await asyncio.sleep(_POLL_S)
    return note


def _address(screen: Screen, ui_url: str | None) -> None:
    if ui_url:
        screen.line(f"  watch it in the Temporal UI: {ui_url}", "bold")
