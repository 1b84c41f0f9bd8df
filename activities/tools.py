"""`run_tool`: one call of a stored reply, its answer stored for the model.

The receipt, the staged proposals and the candidate output stand in one transaction: a repeated activity
finds the receipt and changes nothing (DESIGN §4, rule 10).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalio import activity

from activities.generations import Generations, Place
from activities.heartbeat import beating
from activities.invocations import call_tool
from activities.own_data import OwnData
from activities.transcripts import Transcripts
from kernel.agent.messages import clean_json
from kernel.catalog import BUILTIN_DATA_TOOLS
from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from kernel.wire.agent import RunTool, ToolOutcome
from kernel.wire.base import Json, outline
from store import runs, tool_results
from store.connection import Connection
from store.engine import Store
from store.tool_results import ToolResult

_REFUSALS = {
    Code.TOOL_DENIED: "A person denied this call.",
    Code.TOOL_EXPIRED: "Nobody approved this call in time; it was not executed.",
    Code.TOOL_CANCELLED: "This call was withdrawn; it was not executed.",
    Code.SESSION_QUEUE_FULL: "Nobody could be asked to approve this call; it was not executed.",
}


class ToolActivities:
    """Runs tools."""

    def __init__(self, store: Store, generations: Generations, transcripts: Transcripts) -> None:
        self._store = store
        self._generations = generations
        self._transcripts = transcripts

    @activity.defn(name=names.RUN_TOOL)
    async def run_tool(self, call: RunTool) -> ToolOutcome:
        """Run one call; a tool's mistake is an answer that the model sees, never a failed activity."""
        async with beating():
            place = await self._generations.place(call.turn_id, call.runtime_id)
            result = await self._run(place, call)
        self._transcripts.keep(place, [], [result])
        return _outcome(result)

    async def _run(self, place: Place, call: RunTool) -> ToolResult:
        if call.refused:
            message = f"{_REFUSALS.get(call.refused, 'Not executed.')} {call.note}".strip()
            return await self._refuse(place, call, call.refused, message)
        if call.name in BUILTIN_DATA_TOOLS:
            return await self._run_builtin(place, call)
        return await self._run_plugin(place, call)

    async def _run_builtin(self, place: Place, call: RunTool) -> ToolResult:
        # Only the store is touched: a repeat works it out again, and the receipt keeps the first answer.
        async with self._store.write() as conn:
            own = OwnData(self._store, place, conn, owner_code=False)
            try:
                result = await builtin(
                    own, call.name, await self._transcripts.arguments(conn, place, call.step, call.index)
                )
            except TurnwrightError as error:
                return await _answer(conn, place, call, error=error)
            return await _answer(conn, place, call, result=result, own=own)

    async def _run_plugin(self, place: Place, call: RunTool) -> ToolResult:
        async with self._store.read() as conn:
            if recorded := await _recorded(conn, place, call):
                return recorded
            arguments = await self._transcripts.arguments(conn, place, call.step, call.index)
        own = OwnData(self._store, place)
        result, error = None, None
        try:
            result = await call_tool(place, own, call.name, arguments, seed=f"{call.step}.{call.index}")
        except TurnwrightError as refusal:
            error = refusal
        async with self._store.write() as conn:
            if recorded := await _recorded(conn, place, call):
                return recorded
            return await _answer(conn, place, call, result=result, error=error, own=own)

    async def _refuse(self, place: Place, call: RunTool, code: Code, message: str) -> ToolResult:
        async with self._store.write() as conn:
            if recorded := await _recorded(conn, place, call):
                return recorded
            return await _answer(conn, place, call, error=TurnwrightError(code, message))


async def builtin(own: OwnData, name: str, arguments: Mapping[str, Any]) -> Json:
    """Run one of the host's data tools. Spec: plugin-model §12."""
    match name:
        case "plugin-data-set":
            own.set(arguments["namespace"], arguments["key"], arguments["value"])
            return {"stored": True}
        case "plugin-data-set-batch":
            own.set_batch(arguments["items"])
            return {"stored": len(arguments["items"])}
        case "plugin-data-get":
            value = await own.get(arguments["namespace"], arguments["key"])
            return {"found": False} if value is None else {"found": True, "value": value}
        case "plugin-data-list":
            return {
                "records": await own.list_records(arguments["namespace"], prefix=arguments.get("prefix", ""))
            }
        case "plugin-data-delete":
            own.delete(arguments["namespace"], arguments["key"])
            return {"deleted": True}
    raise TurnwrightError(Code.TOOL_UNKNOWN, f"no tool {name!r}", accepted=", ".join(BUILTIN_DATA_TOOLS))


async def _recorded(conn: Connection, place: Place, call: RunTool) -> ToolResult | None:
    return await tool_results.get(conn, place.owner_id, place.runtime_id, call.step, call.index)


async def _answer(
    conn: Connection,
    place: Place,
    call: RunTool,
    *,
    result: Json = None,
    error: TurnwrightError | None = None,
    own: OwnData | None = None,
) -> ToolResult:
    """Store what the model will read, and with a success what it staged; returns what stands."""
    step, index = call.step, call.index
    stored, new = await tool_results.put(
        conn,
        place.owner_id,
        place.runtime_id,
        step,
        index,
        call_id="",
        ok=error is None,
        code=error.code if error else None,
        message=outline(error.message) if error else "",
        result={"error": str(error)} if error else clean_json(result),
    )
    if new and error is None and own is not None:
        await runs.stage(conn, place.owner_id, place.runtime_id, own.staged, step=step, idx=index)
        if call.finishing:
            await runs.put_output(conn, place.owner_id, place.runtime_id, output=clean_json(result))
    return stored


def _outcome(result: ToolResult) -> ToolOutcome:
    if result.ok:
        return ToolOutcome(ok=True)
    return ToolOutcome(ok=False, code=Code(result.code or Code.TOOL_FAILED), message=result.message)
