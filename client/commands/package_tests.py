"""`turnwright package test`."""

from __future__ import annotations

from typing import Annotated

import typer

from client import output
from client.commands.options import AsJson


@output.command
async def play_cases(
    package: Annotated[
        str, typer.Argument(metavar="PATH|ID[/RUNTIME]", help="A package, or one of its runtimes.")
    ],
    case: Annotated[str | None, typer.Option("--case", help="Only the case of this name.")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Play against the configured models instead of written replies.")
    ] = False,
    show_prompts: Annotated[
        bool, typer.Option("--show-prompts", help="Print what the model was asked, and its replies.")
    ] = False,
    pretty: Annotated[bool, typer.Option("--pretty", help="Print what every case left.")] = False,
    as_json: AsJson = False,
) -> int | None:
    """Play the cases of a package offline: tests/runtime-cases.json, or a smoke test of a single runtime.

    Everything is real but the model's replies: a Temporal server in memory, a worker, the workflows. The code
    of the packages under test runs without being asked about. Exit status: 0 all passed, 1 not.
    """
    from client.testing import report
    from client.testing.plan import plan
    from client.testing.play import Report, play
    from client.testing.stand import stand
    from link.settings import load_settings

    settings = load_settings()
    planned = plan(settings, package, case=case, live=live)
    told, progress = output.stdout(), output.stderr()
    folders = list(dict.fromkeys([planned.folder, *(other for one in planned.cases for other in one.others)]))
    reports: list[Report] = []
    for is_live in sorted({one.case.mode == "live" for one in planned.cases}):
        progress.print("starting a server, a worker and a model", markup=False, style="dim")
        async with stand(settings, folders, [planned.package], live=is_live) as ready:
            for one in (one for one in planned.cases if (one.case.mode == "live") == is_live):
                progress.print(f"case {one.case.name}", markup=False, style="dim")
                reports.append(found := await play(ready, planned, one))
                if as_json:
                    continue
                lines = [report.line(found), *(f"    {problem}" for problem in found.problems)]
                lines += report.pretty(found) if pretty else ()
                lines += report.prompts(found) if show_prompts else ()
                for text in lines:
                    told.print(text, markup=False, soft_wrap=True, highlight=False)
    passed = sum(one.passed for one in reports)
    if as_json:
        output.print_json(report.document(reports))
    else:
        told.print(f"{passed} of {len(reports)} cases passed", markup=False)
    return output.OK if passed == len(reports) else output.WRONG
