"""Bounded calls to one workflow: every answer is a value or a named error, within seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.client import Client
from temporalio.exceptions import TemporalError

from client import failures, watchdog
from kernel.errors import Code, TurnwrightError

PATIENCE_S: Final = 4.0
"""Seconds without an answer after which the watchdog looks, and again after each further round."""

GIVE_UP_S: Final = 20.0
"""Seconds after which a call without an answer fails, whatever the watchdog finds."""

QUERY_S: Final = 12.0
"""The same for a question."""

_NOBODY_ANSWERS: Final = (Code.WORKER_ABSENT, Code.WORKFLOW_STUCK, Code.SERVER_UNREACHABLE)
"""Troubles of a question: a workflow that is over still answers, once a worker has replayed it."""

_PAUSE_S: Final = 0.2

T = TypeVar("T")


async def update(client: Client, workflow_id: str, name: str, message: Any, result_type: type[T]) -> T:
    """Send an update and await its answer.

    Raises:
        TurnwrightError: the refusal's own code; or why there is no answer. A missing answer does not
            mean that the update was refused: it may still run when a worker comes.
    """
    handle = client.get_workflow_handle(workflow_id)

    async def send() -> T:
        limit = timedelta(seconds=GIVE_UP_S)
        answer: T = await handle.execute_update(name, message, result_type=result_type, rpc_timeout=limit)
        return answer

    return await _watched(client, workflow_id, send)


async def query(client: Client, workflow_id: str, name: str, result_type: type[T]) -> T:
    """Ask a workflow, open or closed.

    Raises:
        TurnwrightError: why there is no answer.
    """
    handle = client.get_workflow_handle(workflow_id)

    async def ask() -> T:
        limit = timedelta(seconds=PATIENCE_S)
        answer: T = await handle.query(name, result_type=result_type, rpc_timeout=limit)
        return answer

    return await _watched(client, workflow_id, ask, closed_answers=True)


async def _watched(
    client: Client, workflow_id: str, send: Callable[[], Awaitable[T]], *, closed_answers: bool = False
) -> T:
    call = asyncio.ensure_future(_until_answered(send))
    give_up = QUERY_S if closed_answers else GIVE_UP_S
    try:
        for _ in range(int(give_up / PATIENCE_S)):
            done, _ = await asyncio.wait({call}, timeout=PATIENCE_S)
            if done:
                return await _answer(client, workflow_id, call)
            problem = await watchdog.diagnose(client, workflow_id)
            if problem and (not closed_answers or problem.code in _NOBODY_ANSWERS):
                raise problem
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    raise silent(workflow_id, give_up)


async def _until_answered(send: Callable[[], Awaitable[T]]) -> T:
    """Send again after an outage, and after a silence: a worker that dies cancels what it was asked."""
    task = asyncio.current_task()
    while True:
        try:
            return await send()
        except TemporalError as error:
            if task and task.cancelling():  # the SDK turns a cancelled update into an error of its own
                raise asyncio.CancelledError from None
            if not (failures.is_outage(error) or failures.is_silence(error)):
                raise
        await asyncio.sleep(_PAUSE_S)


async def _answer(client: Client, workflow_id: str, call: asyncio.Future[T]) -> T:
    try:
        return call.result()
    except TemporalError as error:
        if failures.is_missing(error) and (problem := await watchdog.diagnose(client, workflow_id)):
            raise problem from None
        raise failures.named(error, workflow_id) from None


def silent(workflow_id: str, seconds: float) -> TurnwrightError:
    """The refusal when nothing looks wrong with a workflow, and yet nobody answers for it."""
    return TurnwrightError(
        Code.WORKER_ABSENT,
        f"no worker answered within {seconds:g} s, though one polled a moment ago",
        where=workflow_id,
        accepted=f"{watchdog.START_A_WORKER}; what was asked may still happen",
    )
