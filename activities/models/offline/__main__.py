"""`python -m activities.models.offline --port N`: serve until interrupted; prints its URL first."""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from activities.models.offline import DEFAULT_DELAY_S, start_offline


async def _serve(host: str, port: int, delay_ms: float) -> None:
    server = await start_offline(host, port, delay_s=delay_ms / 1000)
    print(server.url, flush=True)
    try:
        await server.wait()
    finally:
        await server.close()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m activities.models.offline", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument(
        "--delay-ms", type=float, default=DEFAULT_DELAY_S * 1000, help="pause before each word"
    )
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(given.host, given.port, given.delay_ms))


if __name__ == "__main__":
    main()
