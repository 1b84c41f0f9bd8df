"""Model calls that are paid for: every wire call stands in the ledger before it is sent, and after.

The end of the last one is written by the caller, in the transaction that stores the reply: apart, a crash
between the two would leave a call in the books whose reply is lost.

Attempts on a provider are made here, and only here (DESIGN §4, rule 4). A call that was in flight when its
worker died is found as `sent`, counted as unknown, and sent again under the same idempotency key.
Spec: plugin-model §11.2.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from opentelemetry import trace

from activities.models.slots import Slot
from activities.models.wire import CallLimits, OnEvent, Wire, WireError
from kernel.agent.messages import ModelReply, ModelRequest, Usage
from kernel.errors import Code
from kernel.wire.endpoints import shown_url
from kernel.wire.usage import UsageTotals
from store import calls
from store.connection import Connection
from store.engine import Store

_tracer = trace.get_tracer("turnwright")

FIRST_BACKOFF_S = 0.25
MOST_BACKOFF_S = 8.0


@dataclass(frozen=True)
class Payer:
    """Who a call is charged to; with the ordinal it is the idempotency key."""

    session_id: str
    turn_id: str
    owner_id: str
    runtime_id: str
    ordinal: int

    @property
    def key(self) -> str:
        return f"{self.owner_id}/{self.runtime_id}/{self.ordinal}"


@dataclass(frozen=True)
class Patience:
    """How long, and how often, one step may try.

    Attributes:
        story: text that was shown forbids another attempt after a provider's failure.
    """

    remaining_s: float
    max_retries: int
    idle_s: float = 120.0
    first_token_s: float | None = None
    story: bool = False


@dataclass(frozen=True)
class Paid:
    """What a step bought: a reply or the last failure, and what all attempts cost, also before a crash."""

    reply: ModelReply | None
    error: WireError | None
    usage: UsageTotals
    ending: _Ending | None = None

    async def settle(self, conn: Connection) -> None:
        """Write how the last call ended, together with what it brought."""
        if self.ending is not None:
            await self.ending.write(conn)


@dataclass(frozen=True)
class _Ending:
    """How one wire call ended."""

    call: calls.Call
    used: Usage
    cost: float | None
    error: WireError | None

    @property
    def usage(self) -> UsageTotals:
        return UsageTotals(
            calls=1,
            input_tokens=self.used.input_tokens,
            output_tokens=self.used.output_tokens,
            cost_usd=self.cost or 0.0,
            unpriced=int(self.cost is None),
        )

    async def write(self, conn: Connection) -> None:
        await calls.finish(
            conn,
            self.call,
            status="failed" if self.error else "ok",
            code=self.error.code if self.error else None,
            input_tokens=self.used.input_tokens,
            output_tokens=self.used.output_tokens,
            cost_usd=self.cost,
        )


class CallKnown(Exception):
    """The ledger knows a call that should have been new."""


class ModelCalls:
    """Sends requests to configured slots, and keeps the ledger.

    Args:
        slots: by name.
        wires: by the name that slots use.
    """

    def __init__(self, store: Store, slots: Mapping[str, Slot], wires: Mapping[str, Wire]) -> None:
        self._store = store
        self._slots = slots
        self._wires = wires

    def slot(self, name: str) -> Slot:
        """The slot of a name.

        Raises:
            WireError: `model.unconfigured`.
        """
        if (slot := self._slots.get(name)) is None:
            known = ", ".join(sorted(self._slots)) or "none is configured"
            raise WireError(
                Code.MODEL_UNCONFIGURED, f"no model slot {name!r}; slots: {known}", retryable=False
            )
        return slot

    async def call(
        self,
        payer: Payer,
        slot_name: str,
        request: ModelRequest,
        patience: Patience,
        on_event: Callable[[int], OnEvent],
        *,
        only_if_new: bool = False,
    ) -> Paid:
        """Try until there is a reply, a final failure, or no time.

        Args:
            on_event: for an attempt's number, what receives its events.
            only_if_new: send nothing when the ledger knows the call from before.

        Raises:
            CallKnown: it does.
        """
        slot, tries = self.slot(slot_name), 0
        if patience.remaining_s <= 0:
            error = WireError(Code.AGENT_TIMEOUT, "no time is left for a model call", retryable=False)
            return Paid(None, error, UsageTotals())
        deadline = time.monotonic() + patience.remaining_s
        while True:
            begun = await self._begin(payer, slot_name, slot, only_if_new=only_if_new and tries == 0)
            left = replace(patience, remaining_s=deadline - time.monotonic())
            reply, failed = await self._attempt(
                slot, payer, request, left, tries, on_event(begun.call.attempt)
            )
            failed = failed and failed.at(f"slot {slot_name} at {shown_url(slot.base_url)}")
            ending = _ending(begun.call, slot, reply, failed)
            usage = sum(map(_usage, begun.earlier), ending.usage)
            if failed is None or not self._again(failed, patience, tries):
                return Paid(reply, failed, usage, ending)
            wait_s = backoff_s(tries, failed.retry_after_s)
            if time.monotonic() + wait_s >= deadline:
                return Paid(None, failed, usage, ending)
            async with self._store.write() as conn:
                await ending.write(conn)
            await asyncio.sleep(wait_s)
            tries += 1

    async def _attempt(
        self,
        slot: Slot,
        payer: Payer,
        request: ModelRequest,
        patience: Patience,
        tries: int,
        on_event: OnEvent,
    ) -> tuple[ModelReply | None, WireError | None]:
        facts: dict[str, str | int] = {"call": payer.key, "model": slot.model, "attempt": tries + 1}
        with _tracer.start_as_current_span("model.call", attributes=facts) as span:
            try:
                reply = await self._wires[slot.wire].stream(
                    request,
                    slot.endpoint(),
                    idempotency_key=payer.key,
                    on_event=on_event,
                    limits=_limits(patience, tries),
                )
            except WireError as error:
                span.set_status(trace.StatusCode.ERROR, error.code)
                return None, error
            return reply, None

    async def _begin(self, payer: Payer, slot_name: str, slot: Slot, *, only_if_new: bool) -> calls.Begun:
        async with self._store.write() as conn:
            begun = await calls.begin(
                conn,
                payer.owner_id,
                payer.runtime_id,
                payer.ordinal,
                session_id=payer.session_id,
                turn_id=payer.turn_id,
                slot=slot_name,
                model=slot.model,
                idempotency_key=payer.key,
                only_if_new=only_if_new,
            )
        if begun is None:
            raise CallKnown
        return begun

    def _again(self, error: WireError, patience: Patience, tries: int) -> bool:
        if not error.retryable or tries >= patience.max_retries:
            return False
        return not (patience.story and error.shown_text)


def _ending(call: calls.Call, slot: Slot, reply: ModelReply | None, error: WireError | None) -> _Ending:
    used = reply.usage if reply else error.usage if error else Usage()
    cost = slot.cost(used)
    return _Ending(call, used, None if cost is None else float(cost), error)


def _usage(call: calls.Call) -> UsageTotals:
    return UsageTotals(
        calls=1,
        unknown=int(call.status == "unknown"),
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cost_usd=call.cost_usd,
        unpriced=int(not call.priced),
    )


def backoff_s(tries: int, hint_s: float | None) -> float:
    """How long to wait before the next attempt: the server's hint, else jittered doubling (DECISIONS 10)."""
    if hint_s is not None:
        return hint_s
    doubled: float = FIRST_BACKOFF_S * 2**tries
    return min(MOST_BACKOFF_S, doubled) * random.uniform(0.5, 1.0)


def _limits(patience: Patience, tries: int) -> CallLimits:
    """The limits of one attempt. Spec: plugin-model §11.2 (shares of the time for a first token)."""
    first = patience.first_token_s if patience.first_token_s is not None else first_token_s(patience, tries)
    return CallLimits(first_token_s=min(first, patience.remaining_s), idle_s=patience.idle_s)


def first_token_s(patience: Patience, tries: int) -> float:
    """An attempt's share of the remaining time; the last attempt may use all of it."""
    attempts_left = patience.max_retries - tries + 1
    left = patience.remaining_s
    if attempts_left <= 1:
        return left
    return min(max(left / attempts_left, 60.0), left / 2, 120.0)
