"""The HTTP client that all model calls of a process share."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

import httpx

# Reads are timed by the call itself (`watch.py`), which knows a first token from silence.
_TIMEOUT = httpx.Timeout(connect=10.0, read=None, write=30.0, pool=30.0)
_POOL = httpx.Limits(max_connections=200, max_keepalive_connections=40, keepalive_expiry=30.0)

# Pooled connections belong to their event loop: one client each, and in a worker there is one loop.
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


def shared_client() -> httpx.AsyncClient:
    """The running loop's client. It ignores proxy and certificate variables of the environment."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None or client.is_closed:
        client = httpx.AsyncClient(timeout=_TIMEOUT, limits=_POOL, trust_env=False, follow_redirects=False)
        _clients[loop] = client
    return client


async def close_shared_client() -> None:
    """Close the running loop's client; the next call opens a new one."""
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()
