"""A whole session by the `temporal` command line alone: every command of `docs/temporal-interface.md`.

Rig and development server only bring up what a client talks to. All talking is done by the commands of
the document, each a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from link.dev_server import binary, start_dev_server
from tests.foreign.document import Ids, Step, steps
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.rig import rig

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[2] / "docs" / "temporal-interface.md"
PATIENCE_S = 30.0
ANSWERS = {"update": "result", "result": "result", "query": "queryResult"}
"""Under which key the command line prints the answer, by subcommand."""


def mark(title: str) -> list[Call]:
    return [Call(name="mark-milestone", arguments=json.dumps({"title": title}), id="call-1")]


def script() -> list[Reply]:
    fact = {"text": "The train stops at Aska."}
    record = {"namespace": "facts", "key": "train-stop", "value": {"facts": [fact]}}
    extracts = "Extract only the facts"
    return [
        Reply(
            tool_calls=[Call(name="plugin-data-set", arguments=json.dumps(record), id="call-1")],
            when=extracts,
        ),
        Reply(text=json.dumps({"facts": [fact]}), when=extracts, times=0),
        Reply(text=fact["text"]),
        Reply(tool_calls=mark("The letter is read")),
        Reply(text="You know the hand that wrote it."),
        Reply(tool_calls=mark("The postcard is read")),
        Reply(text="The picture shows the sea."),
        Reply(tool_calls=mark("The diary is read")),
        Reply(tool_calls=mark("The ticket is read")),
    ]


async def test_every_command_of_the_document_does_what_it_says(tmp_path: Path) -> None:
    async with await start_dev_server(tmp_path / "server", ui=False, in_memory=True) as server:
        settings = {"TURNWRIGHT_ADDRESS": server.address, "TURNWRIGHT_QUEUE": "turnwright"}
        async with rig(tmp_path, model=ModelServer(script()), **settings):
            shell, ids = CommandLine(server.address, tmp_path), Ids()
            for step in steps(DOCUMENT):
                await shell.play(step, ids)


def test_the_document_has_a_command_for_every_message() -> None:
    commands = [step.words(Ids()) for step in steps(DOCUMENT)]
    named = {(words[2], words[words.index("--name") + 1]) for words in commands if "--name" in words}
    asked = {words[words.index("--type") + 1] for words in commands if words[2] == "query"}
    updates = {"submit", "resolve", "interject", "configure", "run", "control"}
    assert named == {("update", name) for name in updates} | {("signal", "resolve"), ("signal", "interject")}
    assert asked == {"state", "graph"}
    assert {words[2] for words in commands} >= {"start", "result", "list", "cancel", "show"}


class CommandLine:
    """Runs commands of the document against one server, with nobody's configuration but ours."""

    def __init__(self, address: str, home: Path) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
        self._environ = {**inherited, "TEMPORAL_ADDRESS": address, "HOME": str(home)}

    async def play(self, step: Step, ids: Ids) -> None:
        """Run one command, once or until its answer is the one that the document shows."""
        deadline = time.monotonic() + PATIENCE_S
        while faults := await self._attempt(step, ids):
            if step.mode != "until" or time.monotonic() > deadline:
                pytest.fail("\n".join([ids.applied(step.command), *faults]))
            await asyncio.sleep(0.1)

    async def _attempt(self, step: Step, ids: Ids) -> list[str]:
        words = step.words(ids)
        assert words[0] == "temporal"
        status, out, err = await self._run(words[1:])
        if step.mode == "refused":
            return [] if status and step.text in err else [f"status {status}, not refused as shown: {err}"]
        if status:
            return [f"status {status}: {err or out}"]
        return [] if step.answer is None else ids.differences(step.answer, _answer(words[2], json.loads(out)))

    async def _run(self, arguments: list[str]) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            str(binary()),
            *arguments,
            env=self._environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        return process.returncode, out.decode(), err.decode()


def _answer(subcommand: str, printed: Any) -> Any:
    if subcommand not in ANSWERS:
        return printed
    answer = printed[ANSWERS[subcommand]]
    return answer[0] if subcommand == "query" else answer
