"""The command line: `turnwright …`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated

import typer

from client import output
from client.commands import (
    health,
    local,
    package_folders,
    package_tests,
    packages,
    people,
    schemas,
    sessions,
    turns,
)
from link.exit import leave

EXIT_STATUSES = """\
Exit status: 0 done; 1 `package validate` or `doctor` found something wrong; 2 the command line or the \
configuration cannot be used; 3 refused; 4 not found; 5 no server, worker or store; 6 the turn failed; \
70 a defect of ours; 130 Ctrl-C; 141 the reader of the output went away; 143 SIGTERM."""

app = typer.Typer(
    name="turnwright",
    help="Plugin-built AI turns as durable Temporal workflows.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(local.demo)
app.command("dev")(local.dev)
app.command("worker")(local.worker)
app.command("play")(local.play)
app.add_typer(sessions.app, name="session")
app.command("submit")(sessions.submit)
app.command("run")(sessions.run)
app.add_typer(turns.app, name="turn")
app.command("inbox")(people.inbox)
app.command("resolve")(people.resolve)
app.add_typer(people.jobs_app, name="jobs")
app.add_typer(packages.app, name="package")
packages.app.command("test")(package_tests.play_cases)
packages.app.command("new")(package_folders.new)
packages.app.command("install")(package_folders.install)
packages.app.command("list")(package_folders.list_all)
packages.app.command("enable")(package_folders.enable)
packages.app.command("disable")(package_folders.disable)
packages.app.command("remove")(package_folders.remove)
app.command("schemas")(schemas.schemas)
app.command("migrate")(health.migrate)
app.command("doctor")(health.doctor)


@people.jobs_app.callback()
def _jobs() -> None:
    """Detached runs."""


def _version(asked: bool) -> None:
    if asked:
        try:
            typer.echo(metadata.version("turnwright"))
        except metadata.PackageNotFoundError:
            typer.echo("not installed as a package")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Plugin-built AI turns as durable Temporal workflows."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its own status, whatever the SDK's threads do at exit."""
    logging.basicConfig(level=os.environ.get("TURNWRIGHT_LOG_LEVEL", "ERROR"), stream=sys.stderr)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # text that is no UTF-8 is no reason to fail
    leave(status(arguments))


def status(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="turnwright")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else output.INTERNAL if end.code else output.OK
    except KeyboardInterrupt:
        return output.INTERRUPTED
    except BrokenPipeError:
        return output.BROKEN_PIPE
    return output.OK


if __name__ == "__main__":
    main()
