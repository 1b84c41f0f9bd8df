"""The turn that is played while workers die: what it does, and what must stand afterwards.

A function buys a text and calls a tool of its package; then the story calls a tool of its package and a
built-in data tool in one reply, and tells the story. Three model calls, three tool calls, one commit.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from store import data, events, exports, messages, state
from store.engine import Store
from tests.support.model_server import Call, ModelServer, Reply, WireCall
from tests.support.rig import Files

STORY_TEXT = "A crow settles on the gate. It waits for you."
PACKAGES = ["omens", "tale"]

_OMENS = """\
---
description: Reads an omen before the turn.
contributes:
  tools:
    - { name: carve, risk: write }
  data:
    signs: { description: Carved signs. }
  events:
    - { topic: omen.seen, description: An omen was seen. }
runtime:
  schedule: { stage: pre-turn }
  io: { output: { schema: ./omen.schema.json, recordAs: last-omen } }
  function: { tools: { plugin: [carve] } }
---
Reads omens.
"""
_TALE = """\
---
description: Tells the story.
contributes:
  tools:
    - { name: mark, risk: write }
  data:
    marks: { description: What was marked. }
    notes: { description: What was noted. }
runtime:
  schedule: { stage: narrative }
  io: { visibility: story, output: { contract: narrative-engine@2 } }
  agent: { tools: { builtin: [plugin-data-set], plugin: [mark] } }
---
Tell the story.
"""
_HANDLER = """
    {trace}
    said = await ctx.gateway.generate_text("Name one omen.")
    carved = await ctx.tools.call("carve", {{"sign": said["text"]}})
    return {{
        "outcome": "success",
        "value": {{"omen": said["text"], **carved}},
        "effects": {{
            "events": [{{"topic": "omen.seen", "payload": {{"omen": said["text"]}}}}],
            "statePatches": [{{"path": "/omens", "ops": [{{"op": "inc", "path": "/seen", "by": 1}}]}}],
        }},
    }}
"""
_TOOL = """
async def {name}(args, ctx):
    {trace}
    before = await ctx.plugin_data.get("{namespace}", "last")
    await ctx.plugin_data.set("{namespace}", "last", {{"said": args["sign"], "before": before}})
    return {{"done": True}}


def register(host):
    parameters = {{
        "type": "object",
        "properties": {{"sign": {{"type": "string"}}}},
        "required": ["sign"],
        "additionalProperties": False,
    }}
    host.register_tool(name="{name}", description="Write it down.", parameters=parameters, handler={name},
                       risk="write")
"""


def packages(trace: Path) -> dict[str, Files]:
    """Both packages; their code writes a line to `trace` whenever it starts."""
    return {
        "omens": {
            "PLUGIN.md": _OMENS,
            "omen.schema.json": json.dumps({"type": "object", "required": ["omen"]}),
            "handler.py": f"async def handler(ctx):{_HANDLER.format(trace=_line(trace, 'handler'))}",
            "server/__init__.py": _TOOL.format(name="carve", namespace="signs", trace=_line(trace, "carve")),
        },
        "tale": {
            "PLUGIN.md": _TALE,
            "server/__init__.py": _TOOL.format(name="mark", namespace="marks", trace=_line(trace, "mark")),
        },
    }


def _line(trace: Path, word: str) -> str:
    return f'open({str(trace)!r}, "a").write(ctx.session_id + " {word}\\n")'


def model() -> ModelServer:
    """Answers any number of reference turns."""
    note = {"namespace": "notes", "key": "gate", "value": {"shut": True}}
    calls = [Call(name="mark", arguments='{"sign": "a crow"}'), _data_call(note)]
    return ModelServer(
        [
            Reply(when="Name one omen.", text="Three crows.", times=0),
            Reply(when="tool_call_id", text=STORY_TEXT, times=0),
            Reply(when="Tell the story.", tool_calls=calls, times=0),
        ]
    )


def _data_call(arguments: dict[str, Any]) -> Call:
    return Call(name="plugin-data-set", arguments=json.dumps(arguments))


def calls_of(server: ModelServer, turn_id: str) -> list[WireCall]:
    """The wire calls of one turn."""
    return [call for call in server.calls if call.idempotency_key.startswith(f"{turn_id}/")]


def started(trace: Path, session_id: str) -> Counter[str]:
    """How often each piece of package code of a session started."""
    lines = trace.read_text().splitlines() if trace.exists() else []
    return Counter(line.split()[1] for line in lines if line.split()[0] == session_id)


async def committed(store: Store, session_id: str) -> dict[str, Any]:
    """Everything that the session's one turn has left."""
    async with store.read() as conn:
        said = await messages.list_all(conn, session_id)
        happened = await events.list_events(conn, session_id)
        exported = await exports.latest(conn, session_id, "omens", "last-omen")
        seen = await state.get(conn, session_id, "/omens")
        records = [
            await data.get(conn, session_id, *where)
            for where in (("omens", "signs", "last"), ("tale", "marks", "last"), ("tale", "notes", "gate"))
        ]
    return {
        "messages": [(message.role, message.text) for message in said],
        "events": [(event.topic, event.payload) for event in happened],
        "export": exported and (exported.number, exported.value["omen"]),
        "state": seen and (seen.value, seen.version),
        "records": [record and (record.value, record.version) for record in records],
    }


def expected(player: str) -> dict[str, Any]:
    """What one turn leaves, however often workers died meanwhile."""
    return {
        "messages": [("player", player), ("story", STORY_TEXT)],
        "events": [("omen.seen", {"omen": "Three crows."})],
        "export": (1, "Three crows."),
        "state": ({"seen": 1}, 1),
        "records": [
            ({"said": "Three crows.", "before": None}, 1),
            ({"said": "a crow", "before": None}, 1),
            ({"shut": True}, 1),
        ],
    }
