"""The records of the `facts` namespace, read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator

from turnwright.sdk import PluginData, Record

NAMESPACE = "facts"
PAGE = 100


async def records(data: PluginData) -> AsyncIterator[Record]:
    """Every record in key order."""
    after: str | None = None
    while page := await data.list(NAMESPACE, after=after, limit=PAGE):
        for record in page:
            yield record
        after = page[-1]["key"]
