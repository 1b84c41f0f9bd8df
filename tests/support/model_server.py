"""A model server that says exactly what a test tells it to, over real HTTP.

In the test's process:

    async with ModelServer([Reply(text="Hello."), Reply(status=429, body="{}")]) as server:
        ...                     # talk to server.url
        server.assert_calls(2)

As a process of its own, for tests whose worker or server is killed:

    python -m tests.support.model_server --script FILE --log FILE [--port N]

FILE is a JSON list of replies; the first line on stdout is the URL; every call is appended to the log before
it is answered, and `read_log` reads it back. `POST /release` on the server lets held replies go on.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import BaseModel, ConfigDict

from activities.models.offline.chat_format import CallAnswer, ChatAnswerParts, stream_events, whole_answer
from activities.models.offline.http_server import HttpRequest, HttpResponse, HttpServer


class Call(BaseModel):
    """A scripted tool call; `id` and `name` may be null, `arguments` is raw text."""

    model_config = ConfigDict(extra="forbid")

    name: str | None
    arguments: str = "{}"
    id: str | None = None


class Reply(BaseModel):
    """One scripted answer.

    Args:
        text, reasoning, tool_calls, finish, model: an ordinary answer; `finish` is derived when left out.
        input_tokens, output_tokens: its usage.
        raw: the exact bytes of the event stream instead; as base64 in a script file.
        splits: cut the stream at these byte offsets, one HTTP chunk each; default one chunk an event.
        status, headers, body: a response that is no stream, when `status` is not 200 or `body` is set.
        stall_after: send this many chunks, then keep the connection open in silence until the client leaves.
        cut_after: send this many chunks, then abort the connection.
        hold: send everything but the last chunk, then wait for `release`, or until the client leaves.
        when: answer only a call whose body contains this.
        times: how often this reply serves; 0 is for ever.
    """

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    text: str = ""
    reasoning: str = ""
    tool_calls: list[Call] = []
    finish: str | None = None
    model: str = "scripted"
    input_tokens: int = 10
    output_tokens: int = 5
    raw: bytes | None = None
    splits: list[int] = []
    status: int = 200
    headers: dict[str, str] = {}
    body: str | None = None
    stall_after: int | None = None
    cut_after: int | None = None
    hold: bool = False
    when: str = ""
    times: int = 1

    def parts(self) -> ChatAnswerParts:
        """The ordinary answer."""
        return ChatAnswerParts(
            model=self.model,
            text=self.text,
            reasoning=self.reasoning,
            calls=tuple(CallAnswer(call.id, call.name, call.arguments) for call in self.tool_calls),
            finish=self.finish or ("tool_calls" if self.tool_calls else "stop"),
            prompt_tokens=self.input_tokens,
            completion_tokens=self.output_tokens,
        )

    def chunks(self) -> list[bytes]:
        """The stream as it goes out."""
        events = [self.raw] if self.raw is not None else list(stream_events(self.parts()))
        if not self.splits:
            return events
        whole = b"".join(events)
        bounds = [0, *sorted(min(max(at, 0), len(whole)) for at in self.splits), len(whole)]
        return [whole[start:end] for start, end in pairwise(bounds) if end > start]


@dataclass(frozen=True)
class WireCall:
    """One call as it came in."""

    number: int
    idempotency_key: str
    authorization: str
    path: str
    raw_body: str

    @property
    def body(self) -> Any:
        """The parsed request."""
        return json.loads(self.raw_body)


class ModelServer:
    """The scripted server. Replies serve in order; a call that none fits is answered with HTTP 500.

    Args:
        script: the replies.
        log: a file that every call is appended to.

    Attributes:
        held, left: set once a reply is held or stalls, and once a client left such a one.
    """

    def __init__(self, script: Sequence[Reply] = (), *, log: Path | None = None) -> None:
        self.script = list(script)
        self.calls: list[WireCall] = []
        self.held = asyncio.Event()
        self.left = asyncio.Event()
        self._left = [reply.times for reply in self.script]
        self._log = log
        self._released = asyncio.Event()
        self._server = HttpServer(self._handle)

    async def __aenter__(self) -> ModelServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self, port: int = 0) -> None:
        """Listen on loopback."""
        await self._server.start(port=port)

    async def close(self) -> None:
        """Stop, cutting what is still open."""
        await self._server.close()

    async def wait(self) -> None:
        """Serve until cancelled."""
        await self._server.wait()

    @property
    def url(self) -> str:
        """The base URL for a slot."""
        return f"{self._server.address}/v1"

    @property
    def connections(self) -> int:
        """How many connections were opened."""
        return self._server.accepted

    def add(self, *replies: Reply) -> None:
        """Append to the script."""
        self.script += replies
        self._left += [reply.times for reply in replies]

    def put_first(self, reply: Reply) -> None:
        """Let a reply serve before the rest of the script."""
        self.script.insert(0, reply)
        self._left.insert(0, reply.times)

    def release(self) -> None:
        """Let held replies send their last chunk, now and later."""
        self._released.set()

    def assert_calls(self, count: int) -> None:
        """Assert the number of wire calls."""
        keys = [call.idempotency_key for call in self.calls]
        assert len(self.calls) == count, f"{len(self.calls)} model calls, not {count}: {keys}"

    async def _handle(self, request: HttpRequest, response: HttpResponse) -> None:
        if request.path == "/release":
            self.release()
            await response.whole(200, b"{}")
        elif request.path == "/calls":
            await response.whole(200, json.dumps([asdict(call) for call in self.calls]).encode())
        else:
            await self._answer(request, response)

    async def _answer(self, request: HttpRequest, response: HttpResponse) -> None:
        self._note(request)
        reply = self._next(request.body)
        if reply is None:
            await response.whole(
                500, b'{"error": {"type": "script", "message": "no scripted reply is left"}}'
            )
        elif reply.status != 200 or reply.body is not None:
            await response.whole(reply.status, (reply.body or "").encode(), reply.headers)
        elif reply.raw is None and not (request.json() or {}).get("stream"):
            await response.whole(200, whole_answer(reply.parts()), reply.headers)
        else:
            await self._stream(reply, response)

    async def _stream(self, reply: Reply, response: HttpResponse) -> None:
        await response.start(200, {"content-type": "text/event-stream", **reply.headers})
        chunks = reply.chunks()
        for number, chunk in enumerate(chunks):
            if number == reply.stall_after:
                await self._until_left(response)
                return
            if number == reply.cut_after:
                response.abort()
                return
            if reply.hold and number == len(chunks) - 1:
                self.held.set()
                if not await self._until_released(response):
                    return
            await response.send(chunk)
        if reply.stall_after is not None:
            await self._until_left(response)
            return
        await response.end()

    async def _until_left(self, response: HttpResponse) -> None:
        self.held.set()
        await response.client_left()
        self.left.set()

    async def _until_released(self, response: HttpResponse) -> bool:
        """Wait; False when the client closed the connection first."""
        released = asyncio.ensure_future(self._released.wait())
        left = asyncio.ensure_future(response.client_left())
        try:
            await asyncio.wait([released, left], return_when=asyncio.FIRST_COMPLETED)
            if not released.done():
                self.left.set()
            return released.done()
        finally:
            released.cancel()
            left.cancel()

    def _note(self, request: HttpRequest) -> None:
        call = WireCall(
            number=len(self.calls) + 1,
            idempotency_key=request.headers.get("idempotency-key", ""),
            authorization=request.headers.get("authorization", ""),
            path=request.path,
            raw_body=request.body.decode(),
        )
        self.calls.append(call)
        if self._log is not None:
            with self._log.open("a") as file:
                file.write(json.dumps(asdict(call)) + "\n")

    def _next(self, body: bytes) -> Reply | None:
        for place, reply in enumerate(self.script):
            usable = reply.times == 0 or self._left[place] > 0
            if usable and reply.when.encode() in body:
                self._left[place] -= 1
                return reply
        return None


def write_script(path: Path, replies: Sequence[Reply]) -> None:
    """Write a script file for the process form."""
    path.write_text(json.dumps([reply.model_dump(mode="json") for reply in replies]))


def read_script(path: Path) -> list[Reply]:
    """Read a script file."""
    return [Reply.model_validate_json(json.dumps(one)) for one in json.loads(path.read_text())]


def read_log(path: Path) -> list[WireCall]:
    """The calls that a server process has logged so far."""
    return list(_logged(path)) if path.exists() else []


def _logged(path: Path) -> Iterator[WireCall]:
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield WireCall(**json.loads(line))


async def _serve(script: Path, log: Path | None, port: int) -> None:
    server = ModelServer(read_script(script), log=log)
    await server.start(port)
    print(server.url, flush=True)
    await server.wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.model_server")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(given.script, given.log, given.port))


if __name__ == "__main__":
    main()
