"""`python -m bench [--quick] [--json] [ROW…]`: one run, a table on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from bench.measure import Clock, progress
from bench.report import Row, as_json, table
from bench.rows import FULL, QUICK, ROWS, Effort
from bench.stage import stage
from link.exit import leave


async def run(chosen: list[str], effort: Effort) -> list[Row]:
    """Measure the chosen rows in their order."""
    clock, found = Clock(), []
    with tempfile.TemporaryDirectory(prefix="turnwright-bench-") as folder:
        progress("starting a Temporal server, a model server and two workers")
        async with stage(Path(folder)) as ready:
            for name in chosen:
                found += await ROWS[name](ready, effort)
    progress(f"took {clock.seconds():.0f} s")
    return found


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"which rows: {', '.join(ROWS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    given = parser.parse_args()
    if unknown := sorted(set(given.rows) - set(ROWS)):
        parser.error(f"no row {unknown[0]!r}; rows: {', '.join(ROWS)}")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    chosen = [name for name in ROWS if not given.rows or name in given.rows]
    try:
        rows = asyncio.run(run(chosen, QUICK if given.quick else FULL))
    except KeyboardInterrupt:
        print("stopped; everything is cleaned up", file=sys.stderr)
        leave(130)
    print(as_json(rows) if given.json else table(rows))
    leave(0)


if __name__ == "__main__":
    main()
