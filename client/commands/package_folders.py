"""`turnwright package new`, `install`, `list`, `enable`, `disable`, `remove`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from client import output
from client.commands.options import AsJson

PackageId = Annotated[str, typer.Argument(metavar="ID", help="Id of the package.")]


@output.command
async def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the package, and name of its folder.")],
    kind: Annotated[
        Literal["agent", "function", "multi"],
        typer.Option("--kind", help="One agent, one function, or an agent and a function."),
    ] = "function",
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where to make its folder.", show_default="here")
    ] = Path(),
    as_json: AsJson = False,
) -> int | None:
    """Write a small package that validates and passes its own cases: a start for one of yours."""
    from client import templates

    made = templates.write(name, kind, folder)
    if as_json:
        output.print_json({"package_id": name, "kind": kind, "folder": str(made.folder), "files": made.files})
        return None
    told = output.stdout()
    for file in made.files:
        told.print(f"wrote {made.folder / file}", markup=False)
    told.print(f"next: turnwright package validate {made.folder}", markup=False)
    told.print(f"      turnwright package test {made.folder}", markup=False)
    return None


@output.command
async def install(
    source: Annotated[Path, typer.Argument(metavar="DIR|ARCHIVE", help="A package folder, or a zip of one.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of the installed one of the same id.")
    ] = False,
    as_json: AsJson = False,
) -> int | None:
    """Check a package and copy it into the home folder, where every session can ask for it.

    None of its code runs until it is approved. Sessions that play the one it replaces go on with that.
    """
    from client import installed
    from link.settings import load_settings

    put = installed.install(load_settings(), source, replace=replace)
    checked = put.checked
    for advice in checked.advice:
        typer.echo(f"advice: {advice.render()}", err=True)
    if as_json:
        found = {"package_id": checked.package_id, "version": checked.version, "digest": checked.digest}
        output.print_json({**found, "folder": str(put.folder)})
        return None
    told = output.stdout()
    told.print(f"installed {checked.package_id} {checked.version}: {put.folder}", markup=False)
    if put.has_code:
        told.print(f"its code runs after: turnwright package approve {checked.package_id}", markup=False)
    return None


@output.command
async def list_all(
    locale: Annotated[str, typer.Option("--locale", metavar="TAG", help="Language of the names.")] = "en",
    as_json: AsJson = False,
) -> int | None:
    """List every package there is: bundled, in the folders of `packages.path`, installed."""
    from client import packages
    from link.settings import load_settings

    found = await packages.known(load_settings(), locale)
    if as_json:
        output.print_json(found)
        return None
    rows = [
        (
            one.package_id,
            one.title,
            one.version,
            one.origin if one.origin == "bundled" else one.folder,
            "on" if one.enabled else "off",
            one.problem or "valid",
        )
        for one in found
    ]
    columns = ("package", "name", "version", "from", "choices", "state")
    output.stdout().print(output.table(columns, tuple(rows), ""))
    return None


@output.command
async def enable(package: PackageId, as_json: AsJson = False) -> int | None:
    """Let sessions choose a package again."""
    await _switch(package, enabled=True, as_json=as_json)
    return None


@output.command
async def disable(package: PackageId, as_json: AsJson = False) -> int | None:
    """Keep a package out of new sessions and new choices; sessions that have it keep it."""
    await _switch(package, enabled=False, as_json=as_json)
    return None


@output.command
async def remove(package: PackageId, as_json: AsJson = False) -> int | None:
    """Take an installed package out of the home folder."""
    from client import installed
    from link.settings import load_settings

    folder = installed.remove(load_settings(), package)
    if as_json:
        output.print_json({"package_id": package, "folder": str(folder)})
    else:
        output.stdout().print(f"removed {package}: {folder}", markup=False)
    return None


async def _switch(package: str, *, enabled: bool, as_json: bool) -> None:
    from client import packages
    from link.settings import load_settings

    await packages.switch(load_settings(), package, enabled=enabled)
    if as_json:
        output.print_json({"package_id": package, "enabled": enabled})
    else:
        output.stdout().print(f"{package} is {'on' if enabled else 'off'} for new choices", markup=False)
