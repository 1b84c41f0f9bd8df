"""Runs of one turn or job: how each ended, its candidate output, and the proposals it staged.

Nothing here is domain truth: a commit reads it and writes the truth, a failed run's rows are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete

from store import rows
from store.connection import Connection
from store.tables import runs, staged


@dataclass(frozen=True)
class Run:
    """A run as stored; `output` and `text` are candidates until its turn commits."""

    owner_id: str
    runtime_id: str
    status: str
    reason: str
    message: str
    output: Any
    text: str | None
    updated_at: float


@dataclass(frozen=True)
class Staged:
    """A proposal of a run, the `ordinal`-th of the tool call that staged it.

    Attributes:
        step: 0 in a function.
        idx: the call's place in its step; 0 in a function.
    """

    owner_id: str
    runtime_id: str
    step: int
    idx: int
    ordinal: int
    proposal: Any


async def put_output(
    conn: Connection,
    owner_id: str,
    runtime_id: str,
    *,
    output: Any,
    text: str | None = None,
    status: str = "success",
    reason: str = "",
    message: str = "",
    now: float | None = None,
) -> None:
    """Record the output of a run together with how it ended."""
    values: dict[str, Any] = {"owner_id": owner_id, "runtime_id": runtime_id, "status": status}
    values |= {"reason": reason, "message": message, "output": output, "text": text}
    await rows.upsert(conn, runs, {**values, "updated_at": rows.moment(now)})


async def lock(conn: Connection, owner_id: str, runtime_id: str) -> None:
    """Let one transaction at a time decide how a run ends."""
    await rows.serialise(conn, "staged", owner_id, runtime_id)


async def get_run(conn: Connection, owner_id: str, runtime_id: str) -> Run | None:
    """The run, or None when nothing was recorded of it."""
    own = (runs.c.owner_id == owner_id) & (runs.c.runtime_id == runtime_id)
    return await rows.one(conn, Run, rows.columns(Run, runs).where(own))


async def get_outputs(conn: Connection, owner_id: str, runtime_ids: Sequence[str]) -> dict[str, Run]:
    """The recorded ones of these runs, by runtime id in code-point order."""
    return {run.runtime_id: run for run in await list_runs(conn, owner_id, runtime_ids)}


async def list_runs(conn: Connection, owner_id: str, runtime_ids: Sequence[str] | None = None) -> list[Run]:
    """Runs of a turn or job by runtime id; all of them, or the named ones."""
    statement = rows.columns(Run, runs).where(runs.c.owner_id == owner_id).order_by(runs.c.runtime_id)
    if runtime_ids is not None:
        statement = statement.where(runs.c.runtime_id.in_(runtime_ids))
    return await rows.many(conn, Run, statement)


async def stage(
    conn: Connection,
    owner_id: str,
    runtime_id: str,
    proposals: Sequence[Any],
    *,
    step: int = 0,
    idx: int = 0,
) -> None:
    """Stage what one call proposes, once.

    Write the tool's receipt in the same transaction: a retried call then finds it and stages nothing twice.
    """
    call = {"owner_id": owner_id, "runtime_id": runtime_id, "step": step, "idx": idx}
    new = [{**call, "ordinal": place, "proposal": proposal} for place, proposal in enumerate(proposals, 1)]
    await rows.insert_all(conn, staged, new)


async def replace_staged(conn: Connection, owner_id: str, runtime_id: str, proposals: Sequence[Any]) -> None:
    """Make these the run's only proposals: what an earlier attempt staged is gone."""
    await rows.serialise(conn, "staged", owner_id, runtime_id)
    await conn.execute(delete(staged).where(*_own(owner_id, runtime_id)))
    await stage(conn, owner_id, runtime_id, proposals)


async def list_staged(conn: Connection, owner_id: str, runtime_ids: Sequence[str]) -> list[Staged]:
    """Proposals of these runs: run by run in the order given, within a run in the order of its calls.

    Parallel tool calls finish in any order; their proposals still stand in call order. One's own runtime
    alone gives what it has staged so far; its ancestors first and itself last give its overlay.
    """
    place = {runtime_id: index for index, runtime_id in enumerate(runtime_ids)}
    condition = (staged.c.owner_id == owner_id) & staged.c.runtime_id.in_(list(place))
    found = await rows.many(conn, Staged, rows.columns(Staged, staged).where(condition))
    return sorted(found, key=lambda item: (place[item.runtime_id], item.step, item.idx, item.ordinal))


def _own(owner_id: str, runtime_id: str) -> tuple[Any, Any]:
    return staged.c.owner_id == owner_id, staged.c.runtime_id == runtime_id
