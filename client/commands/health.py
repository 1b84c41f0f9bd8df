"""`turnwright doctor` and `migrate`."""

from __future__ import annotations

from client import output
from client.commands.connection import settings
from client.commands.options import AsJson


@output.command
async def doctor(as_json: AsJson = False) -> int | None:
    """Say what is installed, reachable, migrated, stuck or stranded, and what to do; 1 when something is."""
    from client import doctor as examination

    findings = await examination.examine(settings())
    bad = examination.wrong(findings)
    if as_json:
        output.print_json({"ok": not bad, "findings": findings})
    else:
        console = output.stdout()
        for finding in findings:
            console.print(examination.line(finding), markup=False)
    return output.WRONG if bad else output.OK


@output.command
async def migrate(as_json: AsJson = False) -> int | None:
    """Bring the database of the setting `store.url` to this version; several may do it at once."""
    from store.migrate import upgrade

    revision = await upgrade(settings().store_url)
    if as_json:
        output.print_json({"revision": revision})
    else:
        output.stdout().print(f"the database has schema revision {revision}")
    return output.OK
