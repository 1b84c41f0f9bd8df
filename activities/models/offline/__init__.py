"""A model without a network: a real HTTP server on loopback that speaks `/v1/chat/completions`.

It is no stand-in inside the code: the ordinary wire talks to it over a socket, so a demonstration runs what
production runs. Its replies say `"model": "offline"`, or `"scripted"` where a test wrote them beforehand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from activities.models.offline.chat_format import ChatAnswerParts, error_body, stream_events, whole_answer
from activities.models.offline.decide import MODEL_NAME, answer
from activities.models.offline.http_server import HttpRequest, HttpResponse, HttpServer
from activities.models.offline.script import Exhausted, Script

DEFAULT_DELAY_S = 0.015


class OfflineServer:
    """A running offline model; `url` is the base URL of a slot."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self.url = f"{server.address}/v1"

    async def close(self) -> None:
        """Stop serving."""
        await self._server.close()

    async def wait(self) -> None:
        """Serve until cancelled."""
        await self._server.wait()


async def start_offline(
    host: str = "127.0.0.1", port: int = 0, *, delay_s: float = DEFAULT_DELAY_S
) -> OfflineServer:
    """Start the offline model.

    Args:
        host: address to listen on.
        port: 0 takes a free one.
        delay_s: pause before each streamed word.
    """
    service = _Service(delay_s)
    server = HttpServer(service.handle)
    await server.start(host, port)
    return OfflineServer(server)


class _Service:
    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._script = Script()

    async def handle(self, request: HttpRequest, response: HttpResponse) -> None:
        path = request.path.partition("?")[0].rstrip("/")
        if request.method == "GET" and path == "/v1/models":
            models = {"object": "list", "data": [{"id": MODEL_NAME, "object": "model"}]}
            await response.whole(200, json.dumps(models).encode())
        elif request.method == "POST" and path == "/v1/chat/completions":
            await self._complete(request, response)
        elif request.method == "POST" and path == "/script":
            self._script.begin(request.json() or {})
            await response.whole(200, b"{}")
        elif request.method == "GET" and path == "/calls":
            await response.whole(200, json.dumps(self._script.calls).encode())
        else:
            await response.whole(404, error_body("not_found_error", f"no {request.method} {path} here"))

    async def _complete(self, request: HttpRequest, response: HttpResponse) -> None:
        body = request.json()
        if not isinstance(body, Mapping) or not isinstance(body.get("messages"), list):
            await response.whole(400, error_body("invalid_request_error", "`messages` must be a list"))
            return
        key = request.headers.get("idempotency-key", "")
        try:
            parts = self._script.take(key) or answer(body)
        except Exhausted as error:
            self._script.note(key, body, None)
            await response.whole(400, error_body("invalid_request_error", str(error)))
            return
        self._script.note(key, body, parts)
        if body.get("stream"):
            await self._stream(parts, response)
        else:
            await response.whole(200, whole_answer(parts))

    async def _stream(self, parts: ChatAnswerParts, response: HttpResponse) -> None:
        await response.start(200, {"content-type": "text/event-stream", "cache-control": "no-store"})
        for event in stream_events(parts):
            if self._delay_s > 0:
                await asyncio.sleep(self._delay_s)
            await response.send(event)
        await response.end()


__all__ = ["DEFAULT_DELAY_S", "OfflineServer", "start_offline"]
