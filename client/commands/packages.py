"""`turnwright package …`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from client import output
from client.commands.options import AsJson

if TYPE_CHECKING:
    from kernel.manifest import Diagnostic

app = typer.Typer(no_args_is_help=True, help="Work on packages.")


@app.callback()
def packages() -> None:
    """Work on packages."""


@app.command("validate")
def validate(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH|ID", help="A package folder, its PLUGIN.md, one of its RUNTIME.md, or an id."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check a whole package without running its code.

    Exit status: 0 it can be loaded; 1 it cannot; 4 nothing is at PATH.
    """
    raise typer.Exit(output.guarded(lambda: _validate(path, as_json), as_json=as_json))


@app.command("approve")
@output.command
async def approve(
    package: Annotated[str, typer.Argument(metavar="PATH|ID", help="A package folder, or the id of one.")],
    session: Annotated[str | None, typer.Option("--session", help="For this session only.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Approve whatever the folder comes to hold, while `dev` runs.")
    ] = False,
    as_json: AsJson = False,
) -> int | None:
    """Let the code of a package run, after you have read it.

    The approval is bound to the content as it is now: changed content asks again. The code runs in a process
    of its own that can reach neither files nor the network; what that promises says docs/isolation.md.
    """
    from client import grants
    from link.settings import load_settings

    found = await grants.approve(load_settings(), package, session_id=session, follow=follow)
    if as_json:
        output.print_json(asdict(found))
        return None
    what = f"whatever {found.folder} holds" if follow else found.digest
    scope = f"session {session}" if session else "every session"
    output.stdout().print(f"approved {found.package_id} for {scope}: {what}", markup=False, soft_wrap=True)
    return None


@app.command("revoke")
@output.command
async def revoke(
    package: Annotated[str, typer.Argument(metavar="ID", help="Id of the package.")],
    session: Annotated[str | None, typer.Option("--session", help="For this session only.")] = None,
    as_json: AsJson = False,
) -> int | None:
    """Take an approval back: no further call of the package's code starts."""
    from client import grants
    from link.settings import load_settings

    ended = await grants.revoke(load_settings(), package, session_id=session)
    if as_json:
        output.print_json({"package_id": package, "session_id": session or "", "ended": ended})
    else:
        what = "1 approval" if ended == 1 else f"{ended} approvals"
        output.stdout().print(f"revoked {package}: {what} ended", markup=False)
    return None


def _validate(path: Path, as_json: bool) -> int:
    from client import installed, validation
    from link.settings import load_settings

    checked = validation.check(path if path.exists() else installed.find(load_settings(), str(path)))
    if as_json:
        output.print_json(
            {
                "ok": checked.good,
                "package": checked.package_id,
                "path": checked.path,
                "problems": [_problem(one) for one in (*checked.errors, *checked.advice)],
                "languages": {"text": checked.text, "instructions": checked.instructions},
            }
        )
    else:
        for line in validation.lines(checked):
            typer.echo(line)
        for advice in checked.advice:
            typer.echo(f"advice: {advice.render()}", err=True)
    return output.OK if checked.good else output.WRONG


def _problem(one: Diagnostic) -> dict[str, object]:
    return {
        "code": one.code.value,
        "file": one.file,
        "line": one.line,
        "path": one.path,
        "message": one.message,
        "accepted": one.accepted,
        "severity": one.severity,
    }
