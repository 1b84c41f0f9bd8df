"""Receipts of tool calls: what the model reads, and what keeps a retried call from acting twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from store import rows
from store.connection import Connection
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


_RESULTS = rows.columns(ToolResult, tool_results)
_RUN = rows.given(tool_results, "owner_id", "runtime_id")
_OF_CALL = _RESULTS.where(*_RUN, *rows.given(tool_results, "step", "idx"))
_OF_RUN = _RESULTS.where(*_RUN).order_by(tool_results.c.step, tool_results.c.idx)


async def get(conn: Connection, owner_id: str, runtime_id: str, step: int, idx: int) -> ToolResult | None:
    """The receipt of a call, or None when it has none yet."""
    call = {"owner_id": owner_id, "runtime_id": runtime_id, "step": step, "idx": idx}
    return await rows.one(conn, ToolResult, _OF_CALL, **call)


async def put(
    conn: Connection,
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
    values: dict[str, Any] = {"owner_id": owner_id, "runtime_id": runtime_id, "step": step, "idx": idx}
    values |= {"call_id": call_id, "ok": ok, "code": code, "message": message, "result": result}
    values |= {"created_at": rows.moment(now)}
    if await rows.insert_if_absent(conn, tool_results, values):
        return ToolResult(**values), True
    stored = await get(conn, owner_id, runtime_id, step, idx)
    if stored is None:
        raise RuntimeError("a receipt that stands in the way cannot be read")
    return stored, False


async def list_run(conn: Connection, owner_id: str, runtime_id: str) -> list[ToolResult]:
    """Every receipt of a run, by step and in call order."""
    return await rows.many(conn, ToolResult, _OF_RUN, owner_id=owner_id, runtime_id=runtime_id)
