"""`turnwright play`: a person types, the story streams, questions are asked at the prompt, Ctrl-C stops."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from temporalio.client import WorkflowFailureError

from client.api import Turnwright
from client.play import Player
from client.screen import Screen
from kernel.errors import Code, TurnwrightError
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import STORY, story_with
from tests.support.rig import Files, Rig, SessionDriver, rig
from tests.turns.builders import entry, tool

pytestmark = pytest.mark.slow

DARES = story_with(
    "{plugin: [act]}",
    entry(tool("act", 'return "did it"', needs_approval=True, risk="write")),
    "  tools: [{ name: act, needsApproval: true, risk: write }]\n",
)
PATIENCE_S = 20.0
ASKS = Reply(tool_calls=[Call(name="act", id="c1")])


@dataclass
class Seat:
    """Where a person sits: what is typed goes in line by line, what is shown can be looked at."""

    player: Player
    rig: Rig
    session: SessionDriver
    screen: io.StringIO
    typed: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    prompts: list[str] = field(default_factory=list)

    async def read(self, prompt: str) -> str | None:
        """What the player is given as its keyboard."""
        self.prompts.append(prompt)
        return await asyncio.wait_for(self.typed.get(), PATIENCE_S)

    def type(self, *lines: str | None) -> None:
        """Type lines; None is the end of input."""
        for line in lines:
            self.typed.put_nowait(line)

    async def until(self, seen: Callable[[str], bool]) -> str:
        """Look at the screen until it shows what is waited for."""
        async with asyncio.timeout(PATIENCE_S):
            while not seen(self.screen.getvalue()):
                await asyncio.sleep(0.02)
        return self.screen.getvalue()


@asynccontextmanager
async def seat(tmp_path: Path, story: Files, *replies: Reply, nodes: bool = False) -> AsyncIterator[Seat]:
    """A player at the session `tale`, which plays `story`."""
    async with (
        rig(tmp_path, packages={"tale": story}, model=ModelServer(replies)) as r,
        await Turnwright.connect(r.settings) as client,
    ):
        session, screen = await r.session(packages=["tale"]), io.StringIO()
        console = Console(file=screen, width=100, highlight=False)

        async def read(prompt: str) -> str | None:
            return await taken.read(prompt)

        player = Player(client, session.session_id, Screen(console, margin="  "), nodes=nodes, read=read)
        taken = Seat(player, r, session, screen)
        yield taken


def interrupt() -> None:
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


async def test_two_actions_are_two_turns_and_the_end_of_input_leaves(tmp_path: Path) -> None:
    async with seat(tmp_path, STORY, Reply(text="Rain."), Reply(text="Sun."), nodes=True) as s:
        s.type("I wait.", "", "/help", "  I go on.  ", "/state", None)
        assert await s.player.play() == 0
        shown = s.screen.getvalue()
        story = [shown.index(words) for words in ("active, 0 turns committed", "  Rain.\n", "  Sun.\n")]
        assert story == sorted(story)
        assert "✓ tale" in shown
        assert shown.count("1 model call, 10 + 5 tokens") >= 2
        assert "active, 2 turns committed\nrunning: none, waiting: 0, jobs: 0\n" in shown
        assert shown.count("Type what you do.") == 2
        assert s.prompts == ["> "] * 6
        s.rig.model.assert_calls(2)


async def test_the_story_is_shown_while_it_is_told(tmp_path: Path) -> None:
    async with seat(tmp_path, STORY, Reply(text="Rain falls on the old mill.", hold=True)) as s:
        s.type("I wait.", "/quit", "I am not typed any more.")
        playing = asyncio.create_task(s.player.play())
        await s.until(lambda shown: "Rain falls on the old" in shown)
        assert (await s.session.state())["running"] is not None
        s.rig.model.release()
        assert await playing == 0
        assert s.screen.getvalue().count("Rain falls on the old mill.") == 1
        s.rig.model.assert_calls(1)


@pytest.mark.parametrize(
    ("typed", "said", "told"), [("y", "approved", '"did it"'), ("", "denied", "tool.denied")]
)
async def test_a_question_is_answered_at_the_prompt(tmp_path: Path, typed: str, said: str, told: str) -> None:
    async with seat(tmp_path, DARES, ASKS, Reply(text="So be it.")) as s:
        s.type("I dare.", typed, None)
        assert await s.player.play() == 0
        shown = s.screen.getvalue()
        assert "tale asks to call act" in shown
        assert f"  {said}\n" in shown
        assert "So be it." in shown
        assert s.prompts == ["> ", "  allow it? [y/N] ", "> "]
        assert told in s.rig.model.calls[1].raw_body.replace("\\", "")


async def test_ctrl_c_stops_the_turn_and_at_the_prompt_it_leaves(tmp_path: Path) -> None:
    async with seat(tmp_path, STORY, Reply(text="Rain falls on.", hold=True)) as s:
        s.type("I wait.")
        playing = asyncio.create_task(s.player.play())
        await s.rig.model.held.wait()
        interrupt()
        await s.until(lambda shown: "stopping the turn; Ctrl-C again leaves" in shown)
        await s.until(lambda shown: "! stopped" in shown and s.prompts == ["> ", "> "])
        assert not playing.done()
        interrupt()
        assert await playing == 130


async def test_a_second_ctrl_c_leaves_a_turn_that_does_not_stop(tmp_path: Path) -> None:
    async with seat(tmp_path, STORY, Reply(text="Rain falls on.", hold=True)) as s:
        s.type("I wait.")
        playing = asyncio.create_task(s.player.play())
        await s.rig.model.held.wait()
        interrupt()
        await s.until(lambda shown: "stopping the turn" in shown)
        interrupt()
        assert await playing == 130
        assert s.prompts == ["> "]


async def test_what_a_session_refuses_is_said_and_play_goes_on(tmp_path: Path) -> None:
    async with seat(tmp_path, STORY, Reply(text="Rain.")) as s:
        await s.session.update("control", {"action": "pause"})
        s.type("I wait.", "/quit")
        assert await s.player.play() == 0
        assert "session.paused: the session is paused" in s.screen.getvalue()


async def test_an_ended_session_is_not_played(tmp_path: Path) -> None:
    async with seat(tmp_path, STORY) as s:
        await s.session.update("control", {"action": "end"})
        await s.session.handle.result()
        with pytest.raises(TurnwrightError) as refused:
            await s.player.play()
        assert refused.value.code == Code.SESSION_ENDED


async def test_a_session_that_did_not_open_is_not_played(tmp_path: Path) -> None:
    async with rig(tmp_path) as r, await Turnwright.connect(r.settings) as client:
        session = await r.session(packages=["nowhere"])
        with pytest.raises(WorkflowFailureError):
            await session.handle.result()
        with pytest.raises(TurnwrightError) as refused:
            await Player(client, session.session_id, Screen(Console(file=io.StringIO()))).play()
        assert refused.value.code == Code.PACKAGE_UNKNOWN
