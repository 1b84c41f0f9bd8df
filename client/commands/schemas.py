"""`turnwright schemas`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from client import output
from client.commands.options import AsJson
from kernel.errors import Code, TurnwrightError


@output.command
async def schemas(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the JSON Schemas here.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", metavar="DIR", help="Write the field tables here.")
    ] = None,
    as_json: AsJson = False,
) -> int | None:
    """Write the JSON Schemas of manifests, cases and configuration, for editors; or their field tables."""
    from client import published

    if out is None and reference is None:
        accepted = "--out DIR, --reference DIR, or both"
        raise TurnwrightError(Code.CONFIG_INVALID, "there is nothing to write", accepted=accepted)
    found = published.schemas()
    written = (
        []
        if out is None
        else published.write(out, {name: published.as_text(schema) for name, schema in found.items()})
    )
    written += [] if reference is None else published.write(reference, published.pages())
    if as_json:
        output.print_json({"written": [str(path) for path in written]})
    else:
        for path in written:
            output.stdout().print(str(path), markup=False, soft_wrap=True)
    return None
