"""How a command speaks: results on stdout, errors on stderr, and one exit status for each kind of end.

| Status | Meaning | Codes |
| --- | --- | --- |
| 0 | done | |
| 1 | something is wrong with what was looked at | `package validate`, `doctor` |
| 2 | the command line or the configuration cannot be used | usage, `config.*` |
| 3 | refused | every code that stands in no other row |
| 4 | not found | `*.unknown`, `runtime.not-manual` excepted |
| 5 | no server, no worker, no store | `server.*`, `worker.*`, `store.*`, `workflow.stuck` |
| 6 | a turn that was waited for failed, was rejected or was stopped | `turn.rejected`, `turn.stopped`, … |
| 70 | a defect of ours | `internal`, `workflow.failed` |
| 130 | Ctrl-C | |
| 141 | the reader of stdout went away | |
| 143 | asked to end by SIGTERM | |
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, NoReturn, ParamSpec

import typer
from rich.console import Console
from rich.table import Table

from kernel.errors import Code, TurnwrightError

OK: Final = 0
WRONG: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
NOT_FOUND: Final = 4
UNREACHABLE: Final = 5
FAILED_TURN: Final = 6
INTERNAL: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
TERMINATED: Final = 143

_FAMILIES: Final = (
    ("config.", USAGE),
    ("server.", UNREACHABLE),
    ("worker.", UNREACHABLE),
    ("store.", UNREACHABLE),
    ("turn.stopped", FAILED_TURN),
    ("turn.rejected", FAILED_TURN),
    ("workflow.stuck", UNREACHABLE),
    ("workflow.failed", INTERNAL),
    ("internal", INTERNAL),
)

FILE_WIDTH: Final = 160
"""Columns of what goes to a file or a pipe."""

P = ParamSpec("P")


class _Pipe(Console):
    """A console whose reader may go away: that ends the command, with no word on stderr."""

    def on_broken_pipe(self) -> NoReturn:
        _leave_pipe()


def stdout() -> Console:
    """The console for results. Made anew: tests and pipes replace `sys.stdout`."""
    fixed = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Pipe(highlight=False, soft_wrap=True, width=None if fixed else FILE_WIDTH)


def stderr() -> Console:
    """The console for errors and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def status_of(code: Code) -> int:
    """The exit status of an error code."""
    if code.endswith(".unknown"):
        return NOT_FOUND
    return next((status for family, status in _FAMILIES if code.startswith(family)), REFUSED)


def error_lines(error: TurnwrightError) -> list[str]:
    """An error for people: what was refused and what is accepted; then where."""
    hint = f" (accepted: {error.accepted})" if error.accepted else ""
    lines = [f"error: {error.code}: {error.message}{hint}"]
    return [*lines, f"  where: {error.where}"] if error.where else lines


def error_json(error: TurnwrightError) -> dict[str, Any]:
    """An error for programs."""
    return {
        "error": {
            "code": error.code.value,
            "message": error.message,
            "where": error.where,
            "accepted": error.accepted,
        }
    }


def plain(value: Any) -> Any:
    """The JSON of whatever a command has to show."""
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def print_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2))


def table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], empty: str) -> Table | str:
    """A plain table, or what to say when it has no rows."""
    if not rows:
        return empty
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*row)
    return shown


def command(body: Callable[P, Coroutine[Any, Any, int | None]]) -> Callable[P, None]:
    """Make a Typer command of a coroutine: it runs, and every end has its status.

    A parameter `as_json` of the command decides how errors are written too.
    """

    @functools.wraps(body)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.get("as_json"))
        raise typer.Exit(guarded(lambda: asyncio.run(_terminable(body(*args, **kwargs))), as_json=as_json))

    signature = inspect.signature(body, eval_str=True)  # Typer reads annotations as they stand
    run.__signature__ = signature.replace(return_annotation=None)  # type: ignore[attr-defined]
    return run


def guarded(work: Callable[[], int | None], *, as_json: bool = False) -> int:
    """Run `work`; its status, or that of whatever ended it."""
    try:
        return work() or OK
    except TurnwrightError as error:
        report(error, as_json=as_json)
        return status_of(error.code)
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
    except BrokenPipeError:
        _leave_pipe()
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if os.environ.get("TURNWRIGHT_TRACEBACK"):
            traceback.print_exc()
        message = f"{type(error).__name__}: {error}"[:500]
        hint = "a report of this; TURNWRIGHT_TRACEBACK=1 shows where it happened"
        report(TurnwrightError(Code.INTERNAL, message, accepted=hint), as_json=as_json)
        return INTERNAL


def report(error: TurnwrightError, *, as_json: bool = False) -> None:
    """Write an error to stderr, and as a document to stdout where one is expected."""
    for line in error_lines(error):
        typer.echo(line.encode("utf-8", "backslashreplace").decode(), err=True)
    if as_json:
        print_json(error_json(error))


async def _terminable(work: Awaitable[int | None]) -> int | None:
    """Let SIGTERM end the command as a cancellation, so that what it started is stopped."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _leave_pipe() -> NoReturn:
    with contextlib.suppress(OSError, ValueError):  # a stand-in for stdout has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(BROKEN_PIPE)
