"""`turnwright session …`, `submit`, `run`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from client import output
from client.commands import choices
from client.commands.connection import connected
from client.commands.options import ActionId, AsJson, SessionId, Wait, parse_json
from kernel.errors import Code, TurnwrightError

if TYPE_CHECKING:
    from client.api import Turnwright
    from kernel.wire.session import Receipt, SessionView
    from kernel.wire.turn import TurnResult
    from kernel.wire.usage import UsageTotals

app = typer.Typer(no_args_is_help=True, help="Make, list, inspect and change sessions.")

Packages = Annotated[
    list[str] | None, typer.Option("--package", help="Activate this package; give it once for each.")
]


@app.command("new")
@output.command
async def new(
    session: SessionId,
    package: Packages = None,
    locale: Annotated[str, typer.Option(help="Locale of the session; `session set` changes it.")] = "en",
    as_json: AsJson = False,
) -> int | None:
    """Create a session and wait until it is open. Without --package: every bundled package."""
    async with connected() as client:
        view = await client.new_session(session, package or None, locale)
        if as_json:
            output.print_json(view)
        else:
            output.stdout().print(f"session {session} is {view.status}", markup=False)
    return None


@app.command("list")
@output.command
async def list_(as_json: AsJson = False) -> int | None:
    """List sessions, the last changed first."""
    async with connected() as client:
        found = await client.sessions()
    if as_json:
        output.print_json(found)
        return None
    rows = [
        (one.session_id, one.status, str(one.turns), ", ".join(one.packages), _when(one.updated_at))
        for one in found
    ]
    columns = ("session", "status", "turns", "packages", "changed")
    output.stdout().print(output.table(columns, rows, "no sessions; `turnwright session new` makes one"))
    return None


@app.command("show")
@output.command
async def show_(session: SessionId, as_json: AsJson = False) -> int | None:
    """Show a session: status, queue, running turn, approvals, jobs, notices, cost."""
    async with connected() as client:
        view = await client.state(session)
        await client.require_alive(session)
        totals = await client.history.usage(session) if client.history.available else None
    if as_json:
        output.print_json({**view.model_dump(mode="json"), "usage": output.plain(totals)})
    else:
        output.stdout().print("\n".join(view_lines(view, totals)), markup=False)
    return None


@app.command("pause")
@output.command
async def pause(session: SessionId, as_json: AsJson = False) -> int | None:
    """Take no further actions; the running turn goes on."""
    return await _control(session, "pause", as_json)


@app.command("resume")
@output.command
async def resume(session: SessionId, as_json: AsJson = False) -> int | None:
    """Go on after a pause."""
    return await _control(session, "resume", as_json)


@app.command("end")
@output.command
async def end(session: SessionId, as_json: AsJson = False) -> int | None:
    """End a session for good: the running turn stops, the queue is dropped, the id is used up."""
    return await _control(session, "end", as_json)


app.command("packages")(choices.packages)


@app.command("set")
@output.command
async def set_(
    session: SessionId,
    setting: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PACKAGE.KEY=VALUE]...",
            help="Settings of packages. VALUE is JSON, or text where it is none; null takes a value back.",
        ),
    ] = None,
    package: Packages = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SLOT", help="Let this model slot answer for a slot or a runtime id."),
    ] = None,
    locale: Annotated[str | None, typer.Option(help="Locale of the session.")] = None,
    as_json: AsJson = False,
) -> int | None:
    """Change what holds from the next turn on; --package gives the whole list."""
    from client.choices import settings

    changes: dict[str, Any] = {
        "packages": package or None,
        "settings": settings(setting or ()) or None,
        "bindings": dict(_binding(text) for text in bind) if bind else None,
    }
    async with connected() as client:
        revision = await client.configure(session, locale=locale, **changes)
    if as_json:
        output.print_json({"revision": revision, "in_force": revision is not None})
    elif revision is None:
        output.stdout().print("recorded; in force once the running turn has ended")
    else:
        output.stdout().print(f"in force as revision {revision}")
    return None


@output.command
async def submit(
    session: SessionId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the player does or says.")],
    wait: Wait = False,
    action_id: ActionId = None,
    payload: Annotated[str | None, typer.Option(metavar="JSON", help="Payload beside the text.")] = None,
    as_json: AsJson = False,
) -> int | None:
    """Submit a player's action; it becomes one turn."""
    value = None if payload is None else parse_json(payload, "--payload")
    async with connected() as client:
        receipt = await client.submit(session, text, action_id, value)
        return await _finish(client, receipt, wait=wait, as_json=as_json)


@output.command
async def run(
    session: SessionId,
    runtime: Annotated[str, typer.Argument(metavar="RUNTIME", help="Id of a manual runtime.")],
    payload: Annotated[str | None, typer.Option(metavar="JSON", help="What the runtime is given.")] = None,
    wait: Wait = False,
    action_id: ActionId = None,
    as_json: AsJson = False,
) -> int | None:
    """Activate a manual runtime."""
    value = None if payload is None else parse_json(payload, "--payload")
    async with connected() as client:
        receipt = await client.run(session, runtime, value, action_id)
        return await _finish(client, receipt, wait=wait, as_json=as_json, runtime=runtime)


async def _finish(
    client: Turnwright, receipt: Receipt, *, wait: bool, as_json: bool, runtime: str | None = None
) -> int:
    """Show a receipt or, where the person waits, the turn's end; returns the exit status.

    Args:
        runtime: the one that was asked for: its failure is the command's.
    """
    if not wait:
        if as_json:
            output.print_json(receipt)
        else:
            output.stdout().print(f"turn {receipt.turn_id}, {_place(receipt)}\n  {receipt.workflow_id}")
        return output.OK
    try:
        result = await client.wait(receipt)
    except TurnwrightError as error:
        output.report(error, as_json=as_json)
        status = output.status_of(error.code)
        return status if status == output.UNREACHABLE else output.FAILED_TURN
    if as_json:
        output.print_json(result)
    else:
        _show_result(result)
    return output.OK if _succeeded(result, runtime) else output.FAILED_TURN


def _succeeded(result: TurnResult, runtime: str | None) -> bool:
    failed = {run.runtime_id for run in result.runs if run.status == "failed"}
    return result.status == "committed" and runtime not in failed


def _show_result(result: TurnResult) -> None:
    """Print how a turn ended, its story first."""
    from client import show

    console = output.stdout()
    if result.story:
        console.print(result.story.text, markup=False)
        console.print()
    elif result.output is not None:
        console.print(json.dumps(result.output, ensure_ascii=False, indent=2), markup=False)
    console.print("\n".join(show.result_lines(result)), markup=False)


def _place(receipt: Receipt) -> str:
    if receipt.position == 0:
        return "runs now or next"
    return f"{receipt.position} before it"


def view_lines(view: SessionView, totals: UsageTotals | None) -> list[str]:
    """A session as people read it."""
    from client import show

    played = show.count(view.completed_player_turns, "turn")
    lines = [
        f"session {view.session_id}: {view.status}, {played} committed",
        f"running: {view.running.turn_id if view.running else 'none'}",
        f"queue: {', '.join(queued.turn_id for queued in view.queue) or 'empty'}",
    ]
    if view.last_turn:
        lines.append(
            f"last turn: {view.last_turn.turn_id} {view.last_turn.status} {view.last_turn.message}".rstrip()
        )
    lines += [show.approval_line(one) for one in view.approvals if one.status == "open"]
    lines += [f"job {one.job.job_id}: {one.job.runtime_id} of {one.job.turn_id}" for one in view.jobs]
    lines += [f"! {notice.code}: {notice.message}" for notice in view.notices]
    return [*lines, f"usage: {show.usage(totals)}"] if totals else lines


async def _control(session: str, action: Literal["pause", "resume", "end"], as_json: bool) -> int | None:
    async with connected() as client:
        receipt = await client.control(session, action)
    if as_json:
        output.print_json(receipt)
    else:
        state = "ends" if receipt.ending else f"is {receipt.status}"
        output.stdout().print(f"session {session} {state}", markup=False)
    return None


def _binding(text: str) -> tuple[str, str]:
    name, mark, slot = text.partition("=")
    if not mark or not name or not slot:
        raise TurnwrightError(Code.CONFIG_INVALID, f"--bind {text!r} cannot be read", accepted="NAME=SLOT")
    return name, slot


def _when(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) if moment else ""
