"""The reference: the same agent turn, written by hand on plain Temporal. `python -m bench.handwritten`.

One workflow, two activities a round. As such loops are usually written, the conversation lives in the
workflow and goes to the model activity as its argument; the tool's result comes back through history. It has
no session, no commit, no ledger, no live text and no idempotency: it is the least that does the work.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiosqlite
import httpx
from pydantic import BaseModel
from temporalio import activity, workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from bench import script
from link.connect import connect
from link.exit import leave
from link.settings import load_settings

QUEUE = "bench-handwritten"
DATABASE, MODEL_URL, READY = "BENCH_DATABASE", "BENCH_MODEL_URL", "BENCH_READY_FILE"

SYSTEM = "You keep notes and tell a story."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": {}, "additionalProperties": True},
        },
    }
    for name, description in ((script.SET, "Store one record."), (script.GET, "Read one record."))
]


class Ask(BaseModel):
    """Input of the model activity: the whole conversation so far."""

    messages: list[dict[str, Any]]


class Answer(BaseModel):
    """What the model said."""

    message: dict[str, Any]
    input_tokens: int
    output_tokens: int


class UseTool(BaseModel):
    """Input of the tool activity."""

    turn_id: str
    name: str
    arguments: dict[str, Any]


class Turn(BaseModel):
    """Input of the workflow."""

    turn_id: str
    text: str


class Told(BaseModel):
    """Result of the workflow."""

    text: str
    input_tokens: int
    output_tokens: int


class Activities:
    """Both activities, over one HTTP client and one database connection."""

    def __init__(self, http: httpx.AsyncClient, database: aiosqlite.Connection) -> None:
        self._http = http
        self._database = database
        self._writing = asyncio.Lock()

    @activity.defn
    async def call_model(self, ask: Ask) -> Answer:
        """Ask for the next message."""
        body = {"model": "scripted", "messages": ask.messages, "tools": TOOLS}
        reply = await self._http.post("/chat/completions", json=body)
        reply.raise_for_status()
        found = reply.json()
        usage = found["usage"]
        return Answer(
            message=found["choices"][0]["message"],
            input_tokens=usage["prompt_tokens"],
            output_tokens=usage["completion_tokens"],
        )

    @activity.defn
    async def use_tool(self, use: UseTool) -> dict[str, Any]:
        """Store or read one record."""
        where = (use.turn_id, use.arguments["namespace"], use.arguments["key"])
        if use.name == script.SET:
            value = json.dumps(use.arguments["value"])
            async with self._writing:
                await self._database.execute(
                    "INSERT OR REPLACE INTO data VALUES (?, ?, ?, ?)", (*where, value)
                )
                await self._database.commit()
            return {"stored": True}
        query = "SELECT value FROM data WHERE turn = ? AND namespace = ? AND key = ?"
        async with self._database.execute(query, where) as cursor:
            row = await cursor.fetchone()
        return {"found": True, "value": json.loads(row[0])} if row else {"found": False}


@workflow.defn(name="HandwrittenTurn")
class HandwrittenTurn:
    """Ask, use the tool, ask again, until there is prose."""

    @workflow.run
    async def run(self, turn: Turn) -> Told:
        """Run one turn."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": turn.text},
        ]
        input_tokens = output_tokens = 0
        while True:
            answer = await workflow.execute_activity_method(
                Activities.call_model, Ask(messages=messages), start_to_close_timeout=timedelta(minutes=2)
            )
            input_tokens += answer.input_tokens
            output_tokens += answer.output_tokens
            messages.append(answer.message)
            calls = answer.message.get("tool_calls") or []
            if not calls:
                text = answer.message["content"]
                return Told(text=text, input_tokens=input_tokens, output_tokens=output_tokens)
            for call in calls:
                use = UseTool(
                    turn_id=turn.turn_id,
                    name=call["function"]["name"],
                    arguments=json.loads(call["function"]["arguments"]),
                )
                result = await workflow.execute_activity_method(
                    Activities.use_tool, use, start_to_close_timeout=timedelta(seconds=30)
                )
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})


async def _open(path: str) -> aiosqlite.Connection:
    database = await aiosqlite.connect(path)
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):  # as the product's store
        await database.execute(f"PRAGMA {pragma}")
    await database.execute(
        "CREATE TABLE IF NOT EXISTS data (turn TEXT, namespace TEXT, key TEXT, value TEXT, "
        "PRIMARY KEY (turn, namespace, key))"
    )
    await database.commit()
    return database


async def _serve() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await connect(load_settings())
    database = await _open(os.environ[DATABASE])
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=40)
    async with httpx.AsyncClient(base_url=os.environ[MODEL_URL], limits=limits, trust_env=False) as http:
        own = Activities(http, database)
        async with Worker(
            client,
            task_queue=QUEUE,
            workflows=[HandwrittenTurn],
            activities=[own.call_model, own.use_tool],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ):
            await asyncio.to_thread(Path(os.environ[READY]).write_text, "ready")
            await stop.wait()
    await database.close()


if __name__ == "__main__":
    asyncio.run(_serve())
    leave(0)
