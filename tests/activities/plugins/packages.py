"""Small packages written to a folder, and the invocations that run them."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

from activities.plugins.code import CodeFiles
from activities.plugins.loader import load_code
from kernel.manifest.contributes import Contributes
from kernel.wire.host import Invoke, InvokeKind, StaticContext

HANDLER = "handler.py"
ENTRY = "server/__init__.py"

STATIC = StaticContext(
    plugin_id="demo",
    runtime_id="demo",
    session_id="s1",
    turn_id="t1",
    logical_turn=3,
    seed="seed",
    now=1_700_000_000.0,
    player_message="I knock.",
    inputs={"narrative": {"value": [{"kind": "narration", "text": "Rain."}]}},
    messages=({"role": "user", "text": "I knock.", "turnId": "t1"},),
)


in_child: Callable[[Path, CodeFiles, str], Any] | None = None
"""Set by the fixture `transport` where packages are to run in a child process."""


def load(
    folder: Path,
    files: dict[str, str],
    *,
    name: str = "demo",
    digest: str | None = None,
    **contributes: Any,
) -> Any:
    """Write the files and load them; a `handler.py` is the handler, a `server/` the entry."""
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(dedent(text))
    declared = CodeFiles(
        package=name,
        handlers=tuple(path for path in files if path.endswith(HANDLER)),
        guards=tuple(path for path in files if path.endswith("guard.py")),
        entry=ENTRY if ENTRY in files else None,
        contributes=Contributes.model_validate(contributes),
    )
    digest = digest or fresh_digest(folder)
    return in_child(folder, declared, digest) if in_child else load_code(folder, declared, digest=digest)


def fresh_digest(folder: Path) -> str:
    """A digest that no other test has."""
    return "sha256:" + hashlib.sha256(str(folder).encode()).hexdigest()


def call(
    kind: InvokeKind = "handler", module: str = HANDLER, name: str = "", args: Any = None, **context: Any
) -> Invoke:
    """An invocation of the demo package."""
    static = STATIC.model_copy(update=context)
    return Invoke(kind=kind, module=module, name=name, args=args, context=static)


def answers(value: Any) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    """A method that always answers the same."""

    async def method(params: dict[str, Any]) -> Any:
        return value

    return method
