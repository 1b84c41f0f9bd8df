"""The scripted model over HTTP, without latency, in a process of its own: `python -m bench.model_server`.

The first line on stdout is the URL for a slot. `GET /started` waits until a request hangs.
"""

from __future__ import annotations

import asyncio
import contextlib

from activities.models.offline.chat_format import stream_events, whole_answer
from activities.models.offline.http_server import HttpRequest, HttpResponse, HttpServer
from bench import script


class ScriptedModel:
    """Answers each request by its own content, so that any number of turns run at once."""

    def __init__(self) -> None:
        self._server = HttpServer(self._handle)
        self._lost: set[str] = set()
        self._hanging = asyncio.Semaphore(0)

    async def serve(self) -> None:
        """Print the URL, then serve until cancelled."""
        await self._server.start()
        print(f"{self._server.address}/v1", flush=True)
        await self._server.wait()

    async def _handle(self, request: HttpRequest, response: HttpResponse) -> None:
        if request.path == "/started":
            await self._hanging.acquire()
            await response.whole(200, b"{}")
            return
        if self._hangs(request):
            self._hanging.release()
            await asyncio.Event().wait()
        parts = script.answer(request.body)
        if b'"stream":true' not in request.body.replace(b" ", b""):
            await response.whole(200, whole_answer(parts))
            return
        # One write on either side: how words follow each other is the model's affair, and this one has no
        # latency.
        await response.whole(200, b"".join(stream_events(parts)), kind="text/event-stream")

    def _hangs(self, request: HttpRequest) -> bool:
        if script.HANG.encode() in request.body:
            return True
        key = request.headers.get("idempotency-key", "")
        if script.SLOW.encode() in request.body and key not in self._lost:
            self._lost.add(key)
            return True
        return False


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(ScriptedModel().serve())
