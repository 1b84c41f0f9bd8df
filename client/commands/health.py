"""`turnwright doctor`."""

from __future__ import annotations

from client import doctor as examination
from client import output
from client.commands.shared import AsJson, settings


@output.command
async def doctor(as_json: AsJson = False) -> int | None:
    """Say what is installed, reachable, migrated, stuck or stranded, and what to do; 1 when something is."""
    findings = await examination.examine(settings())
    bad = examination.wrong(findings)
    if as_json:
        output.print_json({"ok": not bad, "findings": findings})
    else:
        console = output.stdout()
        for finding in findings:
            console.print(examination.line(finding), markup=False)
    return output.WRONG if bad else output.OK
