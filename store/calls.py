"""The usage ledger: a row per wire call to a model, written before the call is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Integer, bindparam, case, cast, func, select, update

from kernel.wire.usage import UsageTotals
from store import rows
from store.connection import Connection
from store.tables import calls


@dataclass(frozen=True)
class Call:
    """One wire call.

    Attributes:
        ordinal: step of an agent, or journal ordinal of a function.
        attempt: from 1 within the ordinal.
        status: sent, ok, failed, or unknown: in flight when its worker died.
        cost_usd: US dollars; 0 where `priced` is false.
    """

    owner_id: str
    runtime_id: str
    ordinal: int
    attempt: int
    session_id: str
    turn_id: str
    slot: str
    model: str
    status: str
    code: str | None
    input_tokens: int
    output_tokens: int
    cost_usd: float
    priced: bool
    idempotency_key: str
    started_at: float
    ended_at: float | None


@dataclass(frozen=True)
class Begun:
    """A call that may be sent now, and every earlier attempt; one that was in flight is `unknown` now."""

    call: Call
    earlier: tuple[Call, ...] = ()


_ATTEMPTS = (
    rows.columns(Call, calls)
    .where(*rows.given(calls, "owner_id", "runtime_id", "ordinal"))
    .order_by(calls.c.attempt)
)
_UNSETTLED = update(calls).where(
    calls.c.owner_id == bindparam("of_owner"),
    calls.c.runtime_id == bindparam("of_runtime"),
    calls.c.ordinal == bindparam("of_ordinal"),
    calls.c.attempt == bindparam("of_attempt"),
    calls.c.status.in_(["sent", "unknown"]),
)


async def begin(
    conn: Connection,
    owner_id: str,
    runtime_id: str,
    ordinal: int,
    *,
    session_id: str,
    turn_id: str,
    slot: str,
    model: str,
    idempotency_key: str,
    only_if_new: bool = False,
    now: float | None = None,
) -> Begun | None:
    """Record that a call is about to be sent. Commit before sending, or a crash loses the count.

    Args:
        only_if_new: record nothing, and return None, when there was an attempt before.
    """
    await rows.serialise(conn, "calls", owner_id, runtime_id)
    values: dict[str, Any] = {
        "owner_id": owner_id,
        "runtime_id": runtime_id,
        "ordinal": ordinal,
        "attempt": 1,
        "session_id": session_id,
        "turn_id": turn_id,
        "slot": slot,
        "model": model,
        "status": "sent",
        "code": None,
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_usd": 0.0,
        "priced": True,
        "idempotency_key": idempotency_key,
        "started_at": rows.moment(now),
        "ended_at": None,
    }
    # Nearly every call is the first of its ordinal: one statement then does.
    if await rows.insert_if_absent(conn, calls, values):
        return Begun(Call(**values))
    return None if only_if_new else await _begin_again(conn, values)


async def _begin_again(conn: Connection, values: dict[str, Any]) -> Begun:
    key = values["owner_id"], values["runtime_id"], values["ordinal"]
    earlier = await attempts(conn, *key)
    in_flight = [call for call in earlier if call.status == "sent"]
    for call in in_flight:
        await _settle(conn, call, status="unknown", ended_at=values["started_at"])
    if in_flight:
        earlier = await attempts(conn, *key)
    again = {**values, "attempt": earlier[-1].attempt + 1}
    await rows.insert_all(conn, calls, [again])
    return Begun(Call(**again), tuple(earlier))


async def finish(
    conn: Connection,
    call: Call,
    *,
    status: str,
    code: str | None = None,
    input_tokens: int = 0,
    output_tokens: int = 0,
    cost_usd: float | None = None,
    now: float | None = None,
) -> bool:
    """Record how a call ended, ok or failed; False when its end was recorded before.

    A call counted as unknown that does come back is corrected: it was paid, and now its price is known.
    """
    usage = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    price = {"cost_usd": float(cost_usd or 0.0), "priced": cost_usd is not None}
    return await _settle(conn, call, status=status, code=code, **usage, **price, ended_at=rows.moment(now))


async def attempts(conn: Connection, owner_id: str, runtime_id: str, ordinal: int) -> list[Call]:
    """Every attempt of a call, the first first."""
    return await rows.many(conn, Call, _ATTEMPTS, owner_id=owner_id, runtime_id=runtime_id, ordinal=ordinal)


async def list_calls(conn: Connection, owner_id: str, runtime_id: str | None = None) -> list[Call]:
    """The calls of a turn, of a job, or of one of its runs."""
    statement = rows.columns(Call, calls).where(calls.c.owner_id == owner_id)
    if runtime_id is not None:
        statement = statement.where(calls.c.runtime_id == runtime_id)
    ordered = statement.order_by(calls.c.runtime_id, calls.c.ordinal, calls.c.attempt)
    return await rows.many(conn, Call, ordered)


async def totals_of_owner(conn: Connection, owner_id: str) -> UsageTotals:
    """What a turn's own runs, or a job, cost so far."""
    return await _totals(conn, calls.c.owner_id == owner_id)


async def totals_of_runtime(conn: Connection, owner_id: str, runtime_id: str) -> UsageTotals:
    """What one run cost so far."""
    return await _totals(conn, *_run(owner_id, runtime_id))


async def totals_of_turn(conn: Connection, turn_id: str) -> UsageTotals:
    """What a turn cost so far, its jobs included."""
    return await _totals(conn, calls.c.turn_id == turn_id)


async def totals_of_session(conn: Connection, session_id: str) -> UsageTotals:
    """What a session cost so far."""
    return await _totals(conn, calls.c.session_id == session_id)


_SUMS = (
    func.count(),
    func.coalesce(func.sum(case((calls.c.status == "unknown", 1), else_=0)), 0),
    func.coalesce(func.sum(calls.c.input_tokens), 0),
    func.coalesce(func.sum(calls.c.output_tokens), 0),
    func.coalesce(func.sum(calls.c.cost_usd), 0.0),
    func.coalesce(func.sum(1 - cast(calls.c.priced, Integer)), 0),
)


async def _totals(conn: Connection, *where: ColumnElement[bool]) -> UsageTotals:
    row = (await conn.execute(select(*_SUMS).where(*where))).one()
    return _usage(row)


def _usage(row: Any) -> UsageTotals:
    count, unknown, input_tokens, output_tokens, cost, unpriced = row
    totals = {"calls": count, "unknown": unknown, "input_tokens": input_tokens}
    totals |= {"output_tokens": output_tokens, "unpriced": unpriced, "cost_usd": round(cost, 9)}
    # Payloads leave out what was never set; zeros would only fill history.
    return UsageTotals(**{name: value for name, value in totals.items() if value})


async def _settle(conn: Connection, call: Call, **changes: Any) -> bool:
    of: dict[str, Any] = {"of_owner": call.owner_id, "of_runtime": call.runtime_id}
    of |= {"of_ordinal": call.ordinal, "of_attempt": call.attempt}
    return (await conn.execute(_UNSETTLED, {**of, **changes})).rowcount == 1


def _run(owner_id: str, runtime_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return calls.c.owner_id == owner_id, calls.c.runtime_id == runtime_id
