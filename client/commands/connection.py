"""The settings of a command, and its client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.api import Turnwright
    from link.settings import Settings


def settings() -> Settings:
    """The settings, with what `turnwright dev` runs under this home."""
    from client import running
    from link.settings import load_settings

    return running.found(load_settings())


@asynccontextmanager
async def connected() -> AsyncIterator[Turnwright]:
    """A client for one command."""
    from client.api import Turnwright

    async with await Turnwright.connect(settings()) as client:
        yield client
