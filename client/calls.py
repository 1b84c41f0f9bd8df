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
        answer: T = await handle.query(
            name, result_type=result_type, rpc_timeout=timedelta(seconds=2 * PATIENCE_S)
        )
        return answer

    return await _watched(client, workflow_id, ask)


async def _watched(client: Client, workflow_id: str, send: Callable[[], Awaitable[T]]) -> T:
    call = asyncio.ensure_future(_through_outages(send))
    rounds = int(GIVE_UP_S / PATIENCE_S)
    try:
        for _ in range(rounds):
            done, _ = await asyncio.wait({call}, timeout=PATIENCE_S)
            if done:
                return await _answer(client, workflow_id, call)
            problem = await watchdog.diagnose(client, workflow_id)
            # An ended workflow still answers queries, once a worker has replayed it.
            if problem and problem.code not in (Code.SESSION_ENDED, Code.TURN_UNKNOWN):
                raise problem
    finally:
        call.cancel()
    raise silent(workflow_id)


async def _through_outages(send: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await send()
        except TemporalError as error:
            if not failures.is_outage(error):
                raise
        await asyncio.sleep(_PAUSE_S)


async def _answer(client: Client, workflow_id: str, call: asyncio.Future[T]) -> T:
    try:
        return call.result()
    except TemporalError as error:
        if failures.is_silence(error) or failures.is_missing(error):
            raise await watchdog.diagnose(client, workflow_id) or silent(workflow_id) from None
        raise failures.named(error, workflow_id) from None


def silent(workflow_id: str) -> TurnwrightError:
    """The refusal when nothing looks wrong and yet no answer comes."""
    return TurnwrightError(
        Code.WORKFLOW_STUCK,
        "the workflow gives no answer, and nothing looks wrong with it",
        where=workflow_id,
        accepted="a later try; what was asked may still happen",
    )
