"""`turnwright package …`."""

from __future__ import annotations

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
        typer.Argument(metavar="PATH", help="A package folder, its PLUGIN.md, or one of its RUNTIME.md."),
    ],
    as_json: AsJson = False,
) -> None:
    """Check a whole package without running its code.

    Exit status: 0 it can be loaded; 1 it cannot; 4 nothing is at PATH.
    """
    raise typer.Exit(output.guarded(lambda: _validate(path, as_json), as_json=as_json))


def _validate(path: Path, as_json: bool) -> int:
    from client import validation

    checked = validation.check(path)
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
