"""Waits for what takes as long as it takes, and notices when it will never come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import TemporalError

from client import calls, failures, watchdog
from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from kernel.wire.ids import parse_workflow_id, session_workflow
from kernel.wire.session import Receipt, SessionResult, SessionView
from kernel.wire.turn import TurnResult

LOOK_S: Final = 2.0
"""Seconds between two looks of the watchdog while somebody waits."""

OPEN_S: Final = 60.0
_POLL_S: Final = 0.05
_SLOWEST_POLL_S: Final = 0.5
_OUTAGE_S: Final = 30.0
_LOADED: Final = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED

Stored = Callable[[str], Awaitable[TurnResult | None]]
"""Looks a turn's receipt up in the store."""


async def until_open(client: Client, handle: WorkflowHandle[object, SessionResult]) -> None:
    """Wait until a session that was just started has loaded itself.

    Raises:
        TurnwrightError: what it failed with, or why it does not come to open.
    """
    loading = asyncio.ensure_future(_loaded(handle))
    tries = int(OPEN_S / calls.PATIENCE_S)
    try:
        for _ in range(tries):
            done, _ = await asyncio.wait({loading}, timeout=calls.PATIENCE_S)
            if done:
                return loading.result()
            if problem := await watchdog.diagnose(client, handle.id):
                raise problem
    finally:
        loading.cancel()
        await asyncio.gather(loading, return_exceptions=True)
    sight = await watchdog.look(client, handle.id)
    attempt, cause = sight.failing or (0, "it gives no reason")
    message = f"the session does not open after {OPEN_S:g} s, attempt {attempt}: {cause}"
    raise TurnwrightError(Code.WORKFLOW_STUCK, message, where=handle.id)


async def _loaded(handle: WorkflowHandle[object, SessionResult]) -> None:
    """Read history as it grows: the first activity that completes is the one that loads the session."""
    try:
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.event_type == _LOADED:
                return
        await handle.result(follow_runs=False)
    except TemporalError as error:
        raise failures.named(error, handle.id) from None


async def until_done(client: Client, receipt: Receipt, stored: Stored) -> TurnResult:
    """Wait until the turn exists, then for its result.

    Raises:
        TurnwrightError: the code of a failed turn; `turn.stopped` when it left the queue without running;
            why nothing goes on.
    """
    if known := await _until_exists(client, receipt, stored):
        return known
    handle = client.get_workflow_handle(receipt.workflow_id, result_type=TurnResult)
    result = asyncio.ensure_future(_result(handle))
    watch = watchdog.Watch(client, receipt.workflow_id)
    try:
        while True:
            done, _ = await asyncio.wait({result}, timeout=LOOK_S)
            if done:
                return result.result()
            if problem := await watch.check():
                raise problem
    finally:
        result.cancel()
        await asyncio.gather(result, return_exceptions=True)


async def _until_exists(client: Client, receipt: Receipt, stored: Stored) -> TurnResult | None:
    pause, looked, gone = _POLL_S, 0.0, 0
    loop = asyncio.get_running_loop()
    while not await _exists(client, receipt.workflow_id):
        if known := await stored(receipt.turn_id):
            return known
        if loop.time() - looked > LOOK_S:
            looked = loop.time()
            # A turn leaves the queue a moment before it exists: only what lasts counts.
            gone = 0 if _expected(await _session(client, receipt), receipt.turn_id) else gone + 1
            if gone > 1:
                raise TurnwrightError(
                    Code.TURN_STOPPED, "the turn left the queue before it ran", where=receipt.workflow_id
                )
        await asyncio.sleep(pause)
        pause = min(pause * 1.3, _SLOWEST_POLL_S)
    return None


def _expected(view: SessionView, turn_id: str) -> bool:
    """Whether the session still means to run the turn."""
    coming = [queued.turn_id for queued in view.queue]
    if view.running:
        coming.append(view.running.turn_id)
    return turn_id in coming


async def _session(client: Client, receipt: Receipt) -> SessionView:
    ref = parse_workflow_id(receipt.workflow_id)
    if ref is None or ref.kind != "turn":
        raise failures.unknown(receipt.workflow_id)
    workflow_id = session_workflow(ref.parts[0])
    return await calls.query(client, workflow_id, names.STATE, SessionView)


async def _exists(client: Client, workflow_id: str) -> bool:
    try:
        await client.get_workflow_handle(workflow_id).describe(rpc_timeout=watchdog.RPC)
    except TemporalError as error:
        if failures.is_missing(error) or failures.is_outage(error) or failures.is_silence(error):
            return False
        raise failures.named(error, workflow_id) from None
    return True


async def _result(handle: WorkflowHandle[object, TurnResult]) -> TurnResult:
    """The result, through a server that goes away for a while."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _OUTAGE_S
    while True:
        began = loop.time()
        try:
            return await handle.result(rpc_timeout=timedelta(seconds=30))
        except WorkflowFailureError as error:
            raise failures.named(error, handle.id) from None
        except TemporalError as error:
            if failures.is_silence(error) or loop.time() - began > _OUTAGE_S:
                deadline = loop.time() + _OUTAGE_S
            elif not failures.is_outage(error) or loop.time() > deadline:
                raise failures.named(error, handle.id) from None
        await asyncio.sleep(_POLL_S)
