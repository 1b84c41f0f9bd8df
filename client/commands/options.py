"""Arguments and options that several commands take."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from kernel.errors import Code, TurnwrightError

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.")]
TurnId = Annotated[str, typer.Argument(metavar="TURN", help="Id of the turn, or its workflow id.")]
OfSession = Annotated[str | None, typer.Option("--session", help="Of this session only.")]
ActionId = Annotated[
    str | None, typer.Option("--action-id", help="Names the action: the same id twice is one turn.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end of the turn, for as long as it takes.")]


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
