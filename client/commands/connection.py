"""The settings of a command, and its client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from client import running
from client.api import Turnwright
from link.settings import Settings, load_settings


def settings() -> Settings:
    """The settings, with what `turnwright dev` runs under this home."""
    return running.found(load_settings())


@asynccontextmanager
async def connected() -> AsyncIterator[Turnwright]:
    """A client for one command."""
    async with await Turnwright.connect(settings()) as client:
        yield client
