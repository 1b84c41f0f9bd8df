"""Receipts of tool calls: what the model reads, and what keeps a retried call from acting twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from store import rows
from store.tables import tool_results


@dataclass(frozen=True)
class ToolResult:
    """How call `idx` of step `step` ended."""

    owner_id: str
    runtime_id: str
    step: int
    idx: int
    call_id: str
    ok: bool
    code: str | None
    message: str
    result: Any
    created_at: float


async def get(
    conn: AsyncConnection, owner_id: str, runtime_id: str, step: int, idx: int
) -> ToolResult | None:
    """The receipt of a call, or None when it has none yet."""
    statement = _of_step(owner_id, runtime_id, step).where(tool_results.c.idx == idx)
    return await rows.one(conn, ToolResult, statement)


async def put(
    conn: AsyncConnection,
    owner_id: str,
    runtime_id: str,
    step: int,
    idx: int,
    *,
    call_id: str,
    ok: bool,
    code: str | None = None,
    message: str = "",
    result: Any = None,
    now: float | None = None,
) -> tuple[ToolResult, bool]:
    """Store a receipt once: the one that stands, and whether this call wrote it.

    A caller that lost must drop what it staged: raise, and let the transaction roll back.
    """
    values = {"owner_id": owner_id, "runtime_id": runtime_id, "step": step, "idx": idx, "call_id": call_id}
    values |= {"ok": ok, "code": code, "message": message, "result": result, "created_at": rows.moment(now)}
    new = await rows.insert_if_absent(conn, tool_results, values)
    stored = await get(conn, owner_id, runtime_id, step, idx)
    if stored is None:
        raise RuntimeError("a receipt that was just stored cannot be read")
    return stored, new


async def list_step(conn: AsyncConnection, owner_id: str, runtime_id: str, step: int) -> list[ToolResult]:
    """The receipts of a step in call order."""
    statement = _of_step(owner_id, runtime_id, step).order_by(tool_results.c.idx)
    return await rows.many(conn, ToolResult, statement)


async def list_run(conn: AsyncConnection, owner_id: str, runtime_id: str) -> list[ToolResult]:
    """Every receipt of a run, by step and in call order."""
    own = (tool_results.c.owner_id == owner_id) & (tool_results.c.runtime_id == runtime_id)
    statement = rows.columns(ToolResult, tool_results).where(own)
    return await rows.many(conn, ToolResult, statement.order_by(tool_results.c.step, tool_results.c.idx))


def _of_step(owner_id: str, runtime_id: str, step: int) -> Any:
    own = (tool_results.c.owner_id == owner_id) & (tool_results.c.runtime_id == runtime_id)
    return rows.columns(ToolResult, tool_results).where(own & (tool_results.c.step == step))
