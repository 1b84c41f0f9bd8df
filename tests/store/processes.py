"""Python code in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path


async def run_python(code: str, *arguments: str) -> int:
    """Run code with this checkout importable; returns the exit status."""
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, *arguments, cwd=root)
    return await asyncio.wait_for(process.wait(), 60)
