"""What every command needs: settings, a client, common options."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer

from client import output, running, show
from client.api import Turnwright
from kernel.errors import Code, TurnwrightError
from kernel.wire.session import Receipt
from kernel.wire.turn import TurnResult
from link.settings import Settings, load_settings

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.")]
TurnId = Annotated[str, typer.Argument(metavar="TURN", help="Id of the turn, or its workflow id.")]
OfSession = Annotated[str | None, typer.Option("--session", help="Of this session only.")]
ActionId = Annotated[
    str | None, typer.Option("--action-id", help="Names the action: the same id twice is one turn.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end of the turn, for as long as it takes.")]


def settings() -> Settings:
    """The settings, with what `turnwright dev` runs under this home."""
    return running.found(load_settings())


@asynccontextmanager
async def connected() -> AsyncIterator[Turnwright]:
    """A client for one command."""
    async with await Turnwright.connect(settings()) as client:
        yield client


def parse_json(text: str, what: str) -> Any:
    """JSON from the command line.

    Raises:
        TurnwrightError: `action.invalid`.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TurnwrightError(
            Code.ACTION_INVALID, f"{what} is not JSON: {error}", where=what, accepted="a JSON value"
        ) from None


async def finish(
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
        show_result(result)
    return output.OK if _succeeded(result, runtime) else output.FAILED_TURN


def _succeeded(result: TurnResult, runtime: str | None) -> bool:
    failed = {run.runtime_id for run in result.runs if run.status == "failed"}
    return result.status == "committed" and runtime not in failed


def show_result(result: TurnResult) -> None:
    """Print how a turn ended, its story first."""
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
