"""A server of ours as a process: started, asked for its URL, and killed at the end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[str]:
    """Run `python -m <arguments>` and give the URL that it prints as its first line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()
