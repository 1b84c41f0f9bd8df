"""Packages of several runtimes, and what tests ask of a session afterwards."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store import data, events
from tests.support.model_server import Call
from tests.support.rig import Files, Rig, SessionDriver

OK = 'return {"outcome": "success", "value": {}}'


@dataclass(frozen=True)
class Fn:
    """A function runtime.

    Args:
        schedule: YAML flow value of `schedule`.
        body: statements of `async def handler(ctx)`, not indented.
        io: YAML flow value of `io`.
        more: further YAML lines of the manifest.
        function: YAML flow value of `function`.
    """

    schedule: str
    body: str = OK
    io: str = "{}"
    more: str = ""
    function: str = "{}"


@dataclass(frozen=True)
class Ag:
    """An agent runtime; see `Fn`. `prompt` is its body."""

    schedule: str
    prompt: str = "Do your work."
    io: str = "{}"
    agent: str = "{}"
    more: str = ""


def package(root: str = "", files: Files | None = None, /, **runtimes: Fn | Ag) -> Files:
    """A package of several runtimes.

    Args:
        root: further YAML lines of the root manifest.
        files: further files.
        runtimes: by folder name, `_` for `-`.
    """
    built = {"PLUGIN.md": f"---\ndescription: A package of tests.\n{root}---\n"}
    for name, runtime in runtimes.items():
        folder = f"runtimes/{name.replace('_', '-')}"
        head = f"---\nschedule: {runtime.schedule}\nio: {runtime.io}\n{runtime.more}"
        if isinstance(runtime, Ag):
            built[f"{folder}/RUNTIME.md"] = f"{head}agent: {runtime.agent}\n---\n{runtime.prompt}\n"
        else:
            built[f"{folder}/RUNTIME.md"] = f"{head}function: {runtime.function}\n---\n"
            built[f"{folder}/handler.py"] = module(runtime.body)
    return {**built, **(files or {})}


def module(body: str) -> str:
    """A handler module whose function has this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"import asyncio\nfrom pathlib import Path\n\n\nasync def handler(ctx):\n{lines}\n"


def meet(folder: Path, own: str, other: str) -> str:
    """Statements that show `own` and wait for `other`: two handlers meet only when they run at once."""
    return (
        f"Path({str(folder / own)!r}).touch()\n"
        f"while not Path({str(folder / other)!r}).exists():\n    await asyncio.sleep(0.01)\n"
    )


async def until(look: Any, found: Any, timeout_s: float = 10.0) -> Any:
    """What `await look()` gives as soon as `found` of it is true."""
    async with asyncio.timeout(timeout_s):
        while True:
            seen = await look()
            if found(seen):
                return seen
            await asyncio.sleep(0.02)


def ended(result: dict[str, Any]) -> dict[str, str]:
    """How every run of a turn ended."""
    return {run["runtime_id"]: run["status"] for run in result.get("runs", [])}


def reason(result: dict[str, Any], runtime_id: str) -> str:
    """Why a run ended as it did."""
    found: str = {run["runtime_id"]: run.get("reason", "") for run in result["runs"]}[runtime_id]
    return found


async def nodes(session: SessionDriver, turn_id: str) -> dict[str, dict[str, Any]]:
    """The nodes of Turn's `graph`, by id."""
    graph = await session.turn(turn_id).query("graph")
    return {node["runtime_id"]: node for node in graph["nodes"]}


async def records(r: Rig, session: SessionDriver, package_id: str, namespace: str) -> dict[str, Any]:
    """Committed data of a namespace."""
    async with r.store.read() as conn:
        page = await data.list_records(conn, session.session_id, package_id, namespace)
    return {record.key: record.value for record in page.records}


async def topics(r: Rig, session: SessionDriver) -> list[tuple[str, Any]]:
    """Committed events, in order."""
    async with r.store.read() as conn:
        found = await events.list_events(conn, session.session_id)
    return [(event.topic, event.payload) for event in found]


def tool(name: str, body: str, parameters: str = '{"type": "object"}', **options: object) -> str:
    """Source of one tool's registration: a handler and its `register_tool` call."""
    safe = re.sub(r"\W", "_", name)
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    return (
        f"async def {safe}(args, ctx):\n{lines}\n\n\nTOOLS.append(dict(name={name!r}, description='A tool.', "
        f"parameters={parameters}, handler={safe}{given}))\n\n\n"
    )


def entry(*tools: str) -> str:
    """An entry module that registers these tools."""
    register = "def register(host):\n    for tool in TOOLS:\n        host.register_tool(**tool)\n"
    return "import asyncio\nfrom pathlib import Path\n\nTOOLS = []\n\n\n" + "".join(tools) + register


def calls(*named: str, arguments: str = "{}") -> list[Call]:
    """Tool calls of a scripted reply, with ids of their own."""
    return [Call(name=name, arguments=arguments, id=f"c{n}") for n, name in enumerate(named)]


def asked(r: Rig, number: int) -> list[dict[str, Any]]:
    """The messages of the n-th model call, from 1."""
    messages: list[dict[str, Any]] = r.model.calls[number - 1].body["messages"]
    return messages


def answers(r: Rig, number: int) -> list[str]:
    """What the n-th model call was told of its tools, in order."""
    return [message["content"] for message in asked(r, number) if message["role"] == "tool"]
