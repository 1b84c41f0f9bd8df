"""`turnwright session packages`: what a session asks for, what it has, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from client import output
from client.commands.connection import connected
from client.commands.options import AsJson, SessionId

if TYPE_CHECKING:
    from client.choices import SessionPackages

Names = list[str] | None


@output.command
async def packages(
    session: SessionId,
    add: Annotated[Names, typer.Option(metavar="NAME", help="Ask for this package too.")] = None,
    remove: Annotated[Names, typer.Option(metavar="NAME", help="Ask for it no longer.")] = None,
    exclude: Annotated[
        Names, typer.Option(metavar="NAME", help="Never have it, whoever needs it; --add takes that back.")
    ] = None,
    provider: Annotated[
        Names,
        typer.Option(
            metavar="CONTRACT=PACKAGE",
            help="Let this package answer for a contract; without a package the choice is taken back.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int | None:
    """Show the packages of a session with reasons, after the changes from the next turn on."""
    from client import choices

    providers = dict(choices.provider(text) for text in provider or ())
    async with connected() as client:
        known = await client.packages(session)
        change = choices.changed(
            known, add=add or (), remove=remove or (), exclude=exclude or (), providers=providers
        )
        revision = await client.configure(session, **change) if change else 0
        known = await client.packages(session) if change else known
    if as_json:
        output.print_json({**output.plain(known), "in_force": revision is not None})
        return None
    output.stdout().print(output.table(("package", "state", "why"), _rows(known), "no packages"))
    if revision is None:
        output.stdout().print("the change is recorded; in force once the running turn has ended")
    return None


def _rows(known: SessionPackages) -> list[tuple[str, ...]]:
    active = [(one["package_id"], "active", one.get("reason", "")) for one in known.active]
    inactive = [(one["package_id"], one["code"], one["message"]) for one in known.inactive]
    told = {name for name, _, _ in inactive}
    excluded = [(name, "excluded", "") for name in known.excluded if name not in told]
    return sorted([*active, *inactive, *excluded])
