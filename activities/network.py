"""Requests of package code: declared origins only, bounded, never into the host's own network.

Spec: plugin-model §25. Redirects are returned, not followed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from kernel.errors import Code, TurnwrightError
from kernel.manifest import HttpPermission
from kernel.wire.base import Json

MAX_RESPONSE_BYTES = 768 * 1024
"""What fits into one message to the code with its escapes."""

TIMEOUT_S = 30.0


class Network:
    """Sends what a runtime declared in `permissions.http`.

    Args:
        ca_file: further certificates to trust, in PEM.
        allow_private: let requests reach private and loopback addresses; for tests of packages.
    """

    def __init__(self, *, ca_file: Path | None = None, allow_private: bool = False) -> None:
        trust = ssl.create_default_context()
        if ca_file is not None:
            trust.load_verify_locations(ca_file)
        self._client = httpx.AsyncClient(verify=trust, trust_env=False, follow_redirects=False)
        self._allow_private = allow_private

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def fetch(self, permissions: Sequence[HttpPermission], params: dict[str, Json]) -> Json:
        """One request.

        Raises:
            TurnwrightError: `tool.unauthorized` for what is not declared, `tool.failed` for what went wrong.
        """
        url, method = str(params["url"]), str(params.get("method", "GET")).upper()
        _check_declared(permissions, url, method)
        if not self._allow_private:
            await _check_public(url)
        try:
            return await self._send(url, method, params)
        except httpx.HTTPError as error:
            raise TurnwrightError(
                Code.TOOL_FAILED, f"{method} {url[:200]} failed: {type(error).__name__}"
            ) from error

    async def _send(self, url: str, method: str, params: dict[str, Json]) -> Json:
        timeout = min(float(params.get("timeoutMs") or TIMEOUT_S * 1000) / 1000, TIMEOUT_S)
        request: dict[str, Any] = {"headers": params.get("headers") or {}, "content": params.get("body")}
        async with self._client.stream(method, url, timeout=timeout, **request) as reply:
            body = bytearray()
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > MAX_RESPONSE_BYTES:
                    raise TurnwrightError(
                        Code.TOOL_FAILED, f"the response is larger than {MAX_RESPONSE_BYTES} bytes"
                    )
            text = body.decode(reply.encoding or "utf-8", "replace")
            return {"status": reply.status_code, "headers": dict(reply.headers), "text": text}


def _check_declared(permissions: Sequence[HttpPermission], url: str, method: str) -> None:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    for permission in permissions:
        if permission.origin.lower() == origin and (
            permission.methods is None or method in permission.methods
        ):
            return
    declared = ", ".join(permission.origin for permission in permissions) or "none is declared"
    raise TurnwrightError(
        Code.TOOL_UNAUTHORIZED, f"{method} {origin} is not in permissions.http", accepted=declared
    )


async def _check_public(url: str) -> None:
    parts = urlsplit(url)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            parts.hostname or "", parts.port or 443, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise TurnwrightError(Code.TOOL_FAILED, f"{parts.hostname} has no address") from error
    for *_, address in found:
        if not ipaddress.ip_address(address[0]).is_global:
            raise TurnwrightError(
                Code.TOOL_UNAUTHORIZED, f"{parts.hostname} leads to {address[0]}", accepted="public addresses"
            )
