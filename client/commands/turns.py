"""`turnwright turn …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from client import output
from client.commands.connection import connected
from client.commands.options import AsJson, TurnId
from kernel.errors import Code, TurnwrightError
from kernel.wire.ids import parse_workflow_id

if TYPE_CHECKING:
    from client.api import Turnwright
    from client.history import TurnRecord
    from kernel.wire.turn import GraphView

app = typer.Typer(no_args_is_help=True, help="Look at a turn, or stop it.")


@app.command("show")
@output.command
async def show_(turn: TurnId, as_json: AsJson = False) -> int | None:
    """Show a turn as it is stored: action, story, runs, tool calls, jobs, commit, cost."""
    async with connected() as client:
        record = await client.turn(turn)
    if as_json:
        output.print_json(record)
    else:
        output.stdout().print("\n".join(record_lines(record)), markup=False)
    return None


@app.command("graph")
@output.command
async def graph(
    turn: TurnId,
    format_: Annotated[
        Literal["text", "mermaid"], typer.Option("--format", help="A tree, or a Mermaid flowchart.")
    ] = "text",
    as_json: AsJson = False,
) -> int | None:
    """Show the graph of a turn with the state of every node; of a closed turn too."""
    async with connected() as client:
        view = await client.graph(turn)
        picture = await _mermaid(client, view) if format_ == "mermaid" and not as_json else ""
    if as_json:
        output.print_json(view)
    elif picture:
        typer.echo(picture, nl=False)
    else:
        from client import show

        head = f"turn {view.turn_id} of {view.session_id}: {view.status}, logical turn {view.logical_turn}"
        output.stdout().print("\n".join([head, *show.tree(view)]), markup=False)
    return None


@app.command("stop")
@output.command
async def stop(turn: TurnId, as_json: AsJson = False) -> int | None:
    """Stop a running or queued turn: nothing of it is committed."""
    async with connected() as client:
        ref = parse_workflow_id(await client.turn_workflow(turn))
        if ref is None or ref.kind != "turn":
            raise TurnwrightError(Code.TURN_UNKNOWN, f"there is no turn {turn!r}")
        receipt = await client.control(ref.parts[0], "cancel-turn", ref.parts[1])
    if as_json:
        output.print_json(receipt)
    else:
        output.stdout().print(f"turn {ref.parts[1]} was asked to stop", markup=False)
    return None


def record_lines(record: TurnRecord) -> list[str]:
    """A stored turn as people read it."""
    from client import show

    action = record.action
    asked = action.text or f"run {action.runtime_id}"
    lines = [f"turn {action.turn_id} of {action.session_id}: {record.status}"]
    lines.append(f"action {action.action_id} ({action.origin}): {show.shortened(asked, 200)}")
    for message in record.messages:
        if message.role != "player":
            lines += ["", message.text, ""]
    lines += [
        f"run {one.runtime_id}: {one.status} {one.reason} {one.message}".rstrip() for one in record.runs
    ]
    lines += [f"tool {show.tool_line(use)}" for use in record.tools]
    lines += [f"job {one.job_id}: {one.runtime_id} {one.status} {one.reason}".rstrip() for one in record.jobs]
    if record.result:
        lines.append(f"committed: {show.committed(record.result.committed)}")
    return [*lines, f"usage: {show.usage(record.usage)}"]


async def _mermaid(client: Turnwright, view: GraphView) -> str:
    """The planned graph, coloured by the states of its nodes."""
    from kernel.schedule import build
    from kernel.schedule.mermaid import mermaid

    plan = await client.history.plan(view.turn_id)
    if plan is None:
        raise TurnwrightError(Code.TURN_UNKNOWN, "the turn has not opened yet", where=view.turn_id)
    return mermaid(build(plan), {node.runtime_id: node for node in view.nodes})
