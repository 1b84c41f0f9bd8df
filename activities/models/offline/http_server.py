"""A small HTTP/1.1 server on asyncio, for loopback only: exact control over what goes out, and when.

It serves the offline model and the scripted one of the tests. Each `send` is one chunk of a chunked response,
so a client reads the very pieces that a handler wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class HttpRequest:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The parsed body; None when it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class HttpResponse:
    """The way back. Either `whole`, or `start`, any number of `send`, and `end`; or `abort` at any point."""

    def __init__(self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
        self._writer = writer
        self._reader = reader
        self.started = False
        self.ended = False

    async def whole(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        kind: str = "application/json",
    ) -> None:
        """Send a complete response."""
        fields = {"content-type": kind, **(headers or {}), "content-length": str(len(body))}
        self._writer.write(_head(status, fields) + body)
        self.started = self.ended = True
        await self._writer.drain()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Open a chunked response."""
        self.started = True
        self._writer.write(_head(status, {**headers, "transfer-encoding": "chunked"}))
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        """Send one chunk; no bytes, no chunk."""
        if data:
            self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await self._writer.drain()

    async def end(self) -> None:
        """Close a chunked response."""
        self._writer.write(b"0\r\n\r\n")
        self.ended = True
        await self._writer.drain()

    async def client_left(self) -> None:
        """Wait until the client closes the connection; it may send nothing meanwhile."""
        with contextlib.suppress(ConnectionError):
            await self._reader.read(1)

    def abort(self) -> None:
        """Cut the connection as a crash does."""
        self._writer.transport.abort()


Handler = Callable[[HttpRequest, HttpResponse], Awaitable[None]]


class HttpServer:
    """Listen on one address and give every request to the handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.address = ""
        self.accepted = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 takes a free one. `address` then holds `http://host:port`."""
        self._server = await asyncio.start_server(self._connect, host, port, limit=MAX_HEAD_BYTES)
        taken = self._server.sockets[0].getsockname()[1]
        self.address = f"http://[{host}]:{taken}" if ":" in host else f"http://{host}:{taken}"

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def wait(self) -> None:
        """Serve until cancelled."""
        assert self._server is not None
        await self._server.serve_forever()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.accepted += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the client left or does not speak HTTP
        except asyncio.CancelledError:
            pass  # `close`: ending quietly here keeps asyncio from logging a cancelled callback
        finally:
            self._connections.discard(task)
            with contextlib.suppress(Exception):
                writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _read_request(reader)
        if request is None:
            return False
        response = HttpResponse(writer, reader)
        try:
            await self._handler(request, response)
        except ConnectionError:
            return False
        except Exception as error:
            if response.started:
                response.abort()
                return False
            message = {"error": {"type": "server_error", "message": f"{type(error).__name__}: {error}"}}
            await response.whole(500, json.dumps(message).encode())
        return response.ended and request.headers.get("connection", "").lower() != "close"


async def _read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = [line.partition(":") for line in lines if line]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return HttpRequest(method, path, headers, await _read_body(reader, headers))


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= MAX_BODY_BYTES:
        raise ValueError("body too large")
    return await reader.readexactly(length)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        if len(body) + size > MAX_BODY_BYTES:
            raise ValueError("body too large")
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return bytes(body)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Status"
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {reason}\r\n{fields}\r\n".encode("latin-1")
