"""The HTTP connections that all model calls of a process share.

A call is one POST, so it goes straight to httpx's transport. The client's layers above that, for redirects,
cookies, authentication and the environment's proxies, are not wanted here, and cost a quarter of the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import httpx

from kernel.manifest.versions import PRODUCT_VERSION

# Reads are timed by the call itself (`watch.py`), which knows a first token from silence.
_TIMEOUT = httpx.Timeout(connect=10.0, read=None, write=30.0, pool=30.0).as_dict()
_POOL = httpx.Limits(max_connections=200, max_keepalive_connections=40, keepalive_expiry=30.0)
_HEADERS = {"User-Agent": f"turnwright/{PRODUCT_VERSION}"}

# Pooled connections belong to their event loop, and in a worker there is one loop.
_transports: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncHTTPTransport] = WeakKeyDictionary()


def shared_transport() -> httpx.AsyncHTTPTransport:
    """The running loop's connections."""
    loop = asyncio.get_running_loop()
    transport = _transports.get(loop)
    if transport is None:
        transport = _transports[loop] = httpx.AsyncHTTPTransport(limits=_POOL, trust_env=False)
    return transport


async def close_shared_transport() -> None:
    """Close the running loop's connections; the next call opens new ones."""
    transport = _transports.pop(asyncio.get_running_loop(), None)
    if transport is not None:
        await transport.aclose()


@asynccontextmanager
async def posted(url: str, content: bytes, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
    """The response to one POST, its body still to be read.

    Raises:
        httpx.HTTPError: as of httpx's client.
        httpx.InvalidURL: the URL is none.
    """
    request = httpx.Request(
        "POST", url, content=content, headers={**_HEADERS, **headers}, extensions={"timeout": _TIMEOUT}
    )
    response = await shared_transport().handle_async_request(request)
    response.request = request
    try:
        yield response
    finally:
        await response.aclose()
