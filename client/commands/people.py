"""`turnwright inbox`, `resolve`, `jobs list`."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from client import output
from client.commands.connection import connected
from client.commands.options import AsJson, OfSession
from kernel.errors import Code, TurnwrightError

jobs_app = typer.Typer(no_args_is_help=True, help="Detached runs.")


@output.command
async def inbox(session: OfSession = None, as_json: AsJson = False) -> int | None:
    """List the open questions to people, the oldest first."""
    async with connected() as client:
        found = await client.inbox(session)
    if as_json:
        output.print_json(found)
        return None
    rows = [
        (one.ref, one.session_id, one.runtime_id, one.tool, _compact(one.arguments), _left(one.deadline))
        for one in found
    ]
    columns = ("ref", "session", "asked by", "tool", "arguments", "time left")
    output.stdout().print(output.table(columns, rows, "nobody waits for an answer"))
    return None


@output.command
async def resolve(
    ref: Annotated[str, typer.Argument(metavar="REF", help="Ref of the approval, as `inbox` lists it.")],
    approve: Annotated[bool, typer.Option("--approve", help="Let the call run.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="Refuse it; the model is told.")] = False,
    note: Annotated[str, typer.Option(help="A word to go with the answer.")] = "",
    signal: Annotated[
        bool, typer.Option("--signal", help="Send a plain signal and await no answer.")
    ] = False,
    session: OfSession = None,
    as_json: AsJson = False,
) -> int | None:
    """Answer an approval; the first answer wins."""
    if approve == deny:
        message = "an approval is answered with one of two words"
        raise TurnwrightError(Code.CONFIG_INVALID, message, accepted="--approve or --deny")
    async with connected() as client:
        if signal:
            await client.resolve_by_signal(
                ref, "approve" if approve else "deny", note=note, session_id=session
            )
            outcome = "sent"
        else:
            receipt = await client.resolve(
                ref, "approve" if approve else "deny", note=note, session_id=session
            )
            outcome = receipt.outcome
    if as_json:
        output.print_json({"ref": ref, "outcome": outcome})
    else:
        output.stdout().print(f"{ref}: {outcome}", markup=False)
    return None


@jobs_app.command("list")
@output.command
async def list_jobs(session: OfSession = None, as_json: AsJson = False) -> int | None:
    """List detached runs, the newest first."""
    async with connected() as client:
        found = await client.jobs(session)
    if as_json:
        output.print_json(found)
        return None
    rows = [(one.job_id, one.session_id, one.runtime_id, one.status, one.reason) for one in found]
    output.stdout().print(output.table(("job", "session", "runtime", "status", "reason"), rows, "no jobs"))
    return None


def _compact(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 60 else text[:59] + "…"


def _left(deadline: float) -> str:
    left = int(deadline - time.time())
    if left <= 0:
        return "expired"
    return f"{left // 3600} h {left % 3600 // 60} min" if left >= 3600 else f"{left // 60} min {left % 60} s"
