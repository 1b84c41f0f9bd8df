"""`turnwright demo`, `dev`, `worker`, `play`: what runs on this machine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from client import output
from client.commands.connection import connected, settings
from client.commands.options import AsJson
from kernel.errors import TurnwrightError

if TYPE_CHECKING:
    from client.running import Running


@output.command
async def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave server, worker and model running, and say how to stop them.")
    ] = False,
    as_json: AsJson = False,
) -> int | None:
    """Play three turns of the bundled packages on a fresh server and show them; under a minute."""
    from client import demo as theatre
    from link.settings import load_settings

    console = output.stderr() if as_json else output.stdout()
    played = await theatre.play(load_settings(), console, keep=keep)
    if as_json:
        output.print_json(played)
    return None


@output.command
async def dev(
    offline: Annotated[
        bool, typer.Option("--offline", help="Play on the offline stand-in even where models are configured.")
    ] = False,
    free_port: Annotated[
        bool, typer.Option("--free-port", help="Take a free port, not the one of `temporal.address`.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop what runs under this home instead.")] = False,
    as_json: AsJson = False,
) -> int | None:
    """Run Temporal server and worker until Ctrl-C; without configured models, the offline stand-in too."""
    from client import dev as development
    from link.settings import load_settings

    if stop:
        pid = await development.stop(load_settings())
        if as_json:
            output.print_json({"stopped": pid})
        else:
            output.stdout().print(f"process {pid} and all it ran are stopped")
        return None
    console = output.stderr() if as_json else output.stdout()

    def ready(note: Running) -> None:
        if as_json:
            output.print_json(note)
            sys.stdout.flush()

    await development.serve(
        load_settings(),
        lambda text: console.print(text, markup=False),
        offline=offline,
        free_port=free_port,
        ready=ready,
    )


def worker(
    as_json: Annotated[
        bool, typer.Option("--json", help="Log JSON objects, one on each line of stderr.")
    ] = False,
) -> None:
    """Run a worker in this process until SIGTERM or Ctrl-C; its log goes to stderr."""
    raise typer.Exit(output.guarded(lambda: _become_worker(as_json), as_json=as_json))


def _become_worker(as_json: bool) -> int:
    """Replace this process: a worker is never imported here."""
    from client import processes
    from link.logs import FORMAT_VARIABLE

    environ = processes.worker_environment(settings())
    if as_json:
        environ[FORMAT_VARIABLE] = "json"
    command = processes.worker_command()
    sys.stdout.flush()
    os.execve(command[0], command, environ)


@output.command
async def play(
    session: Annotated[
        str, typer.Argument(metavar="[SESSION]", help="The session; it is made when it does not exist.")
    ] = "main",
    nodes: Annotated[bool, typer.Option("--nodes", help="Show the pipeline beside the story.")] = False,
    events: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object a line for each event, and prompt for nothing."),
    ] = False,
) -> int | None:
    """Play: type actions, read the story as it streams, answer approvals with y or n.

    With --json, a program plays: each line of stdin is an action, or the answer to the last approval. The
    same goes for input from a pipe or a file; where it ends, an open approval is denied.
    """
    from client.play import Player, Typed
    from client.screen import Events, Screen

    console = output.stdout()
    screen = Events(console) if events else Screen(console, margin="  ")
    try:
        async with connected() as client:
            typed = Typed(prompts=not events and sys.stdin is not None and sys.stdin.isatty())
            return await Player(client, session, screen, nodes=nodes, read=typed.read).play()
    except TurnwrightError as error:
        if events:
            screen.refused(error)
        raise
