"""The product's side: packages, sessions, turns and what they leave in history."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from bench import script
from bench.sizes import Size, size_in, size_of
from kernel.wire import names
from kernel.wire.ids import agent_workflow, session_workflow, turn_workflow

NOTES, BULK = "bench-notes", "bench-bulk"
PROPOSALS = 200

NOTES_MANIFEST = f"""---
description: A story agent that keeps notes.
contributes:
  data:
    {script.NAMESPACE}: {{ description: Notes of the evening. }}
runtime:
  schedule: {{ stage: narrative }}
  io: {{ visibility: story, output: {{ contract: narrative-engine@2 }} }}
  agent:
    model: story
    tools: {{ builtin: [{script.SET}, {script.GET}] }}
---
You keep notes and tell a story.
"""

_BULK_MANIFEST = """---
description: Writes many records in one turn.
contributes:
  data:
    rows: { description: Numbered rows. }
runtime:
  schedule: { stage: pre-turn }
  function: {}
---
"""

_BULK_HANDLER = f"""
async def handler(ctx):
    for number in range({PROPOSALS}):
        await ctx.plugin_data.set("rows", f"row-{{number:03}}", {{"number": number}})
    return {{"outcome": "success", "value": {{}}}}
"""


def write_packages(folder: Path) -> None:
    """Write the packages that the benchmark plays."""
    files = {
        f"{NOTES}/PLUGIN.md": NOTES_MANIFEST,
        f"{BULK}/PLUGIN.md": _BULK_MANIFEST,
        f"{BULK}/handler.py": _BULK_HANDLER,
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


class Session:
    """A session that is open and waits for its first action."""

    def __init__(self, client: Client, session_id: str, handle: WorkflowHandle[Any, Any]) -> None:
        self._client = client
        self._handle = handle
        self.session_id = session_id

    @classmethod
    async def open(cls, client: Client, queue: str, packages: Sequence[str] = (NOTES,)) -> Session:
        """Start a session and wait until it has loaded its packages."""
        session_id = f"bench-{secrets.token_hex(4)}"  # always as long: sizes are compared byte by byte
        handle = await client.start_workflow(
            names.SESSION,
            {"session_id": session_id, "packages": list(packages)},
            id=session_workflow(session_id),
            task_queue=queue,
        )
        session = cls(client, session_id, handle)
        await session.until_quiet()
        return session

    async def submit(self, text: str) -> str:
        """Queue an action; returns the turn's id."""
        receipt = await self._handle.execute_update(names.SUBMIT, {"action_id": "action-1", "text": text})
        return str(receipt["turn_id"])

    async def result(self, turn_id: str) -> dict[str, Any]:
        """Wait until the turn exists, then for its result."""
        handle = self._client.get_workflow_handle(turn_workflow(self.session_id, turn_id))
        pause = 0.005
        while True:
            try:
                return await handle.result()  # type: ignore[no-any-return]
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    async def play(self, text: str) -> dict[str, Any]:
        """One turn, from the player's words to its result."""
        result = await self.result(await self.submit(text))
        if result["status"] != "committed":
            raise RuntimeError(f"the turn was {result['status']}: {result}")
        return result

    async def control(self, action: str) -> None:
        """Send the `control` update."""
        await self._handle.execute_update(names.CONTROL, {"action": action})

    async def configure(self, **changes: Any) -> None:
        """Send the `configure` update."""
        await self._handle.execute_update(names.CONFIGURE, changes)

    async def turn_size(self, text: str) -> Size:
        """Events and bytes of one turn over Session, Turn and Agent; Session's share is what it grew."""
        before = await self.until_quiet()
        turn_id = (await self.play(text))["turn_id"]
        grown = await self.until_quiet() - before
        turn = await size_of(self._client, turn_workflow(self.session_id, turn_id))
        agent = await size_of(self._client, agent_workflow(turn_id, NOTES))
        return grown + turn + agent

    async def until_quiet(self) -> Size:
        """The size of Session's history once nothing of it is under way."""
        async with asyncio.timeout(60):
            while True:
                described = (await self._handle.describe()).raw_description
                if not (
                    described.HasField("pending_workflow_task")
                    or described.pending_activities
                    or described.pending_children
                ):
                    return size_in(described)
                await asyncio.sleep(0.005)
