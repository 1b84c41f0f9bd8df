"""A package that reaches every kind of workflow: a function, a story with a gated tool, a detached job.

before the story   `guide/weather`    a function; asks a model when `asks` is true
the story          `guide/story`      an agent that may call the gated tool `mark`
after the turn     `guide/diary`      a detached job that the next action waits for
"""

from __future__ import annotations

from pathlib import Path

from tests.support.model_server import Call, Reply
from tests.support.rig import Files, SessionDriver
from tests.turns.builders import OK, Ag, Fn, entry, package, tool

PACKAGE = "guide"
STORY = "guide/story"
DIARY = "guide/diary"

_ROOT = "contributes:\n  tools:\n    - { name: mark, risk: write, needsApproval: true }\n"


def guide(*, asks: bool = False, weather: str = OK, diary: str = OK, done: str = "done") -> Files:
    """The package's files.

    Args:
        asks: the function before the story calls a model too.
        weather, diary: statements of the two handlers.
        done: what the gated tool answers.
    """
    ask = 'await ctx.gateway.generate_text("What is the weather?")\n' if asks else ""
    mark = tool("mark", f"return {{'text': {done!r}}}", risk="write", needs_approval=True)
    return package(
        _ROOT,
        {"server/__init__.py": entry(mark)},
        weather=Fn("{ stage: pre-turn }", ask + weather, function="{ model: plugin }" if asks else "{}"),
        story=Ag(
            "{ stage: narrative }",
            "Tell the story.",
            io="{ visibility: story, output: { contract: narrative-engine@2 } }",
            agent="{ tools: { plugin: [mark] } }",
        ),
        diary=Fn("{ stage: post-turn, detached: { settle: true } }", diary, more="effects: {}\n"),
    )


def wait_for(file: Path) -> str:
    """Statements of a handler that goes on once `file` exists."""
    return f"while not Path({str(file)!r}).exists():\n    await asyncio.sleep(0.02)\n{OK}"


def marks(count: int = 1, arguments: str = "{}") -> Reply:
    """A reply that calls the gated tool."""
    return Reply(tool_calls=[Call(name="mark", arguments=arguments, id=f"c{n}") for n in range(count)])


async def approvals(session: SessionDriver, count: int = 1) -> list[str]:
    """The refs of open approvals, once there are `count`."""
    state = await session.until(lambda state: len(_open(state)) == count)
    return _open(state)


def _open(state: dict[str, object]) -> list[str]:
    found: list[str] = [
        approval["ref"]
        for approval in state["approvals"]  # type: ignore[attr-defined]
        if approval.get("status", "open") == "open"
    ]
    return found
