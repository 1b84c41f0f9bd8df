"""The package's side of the protocol: builds the context, runs the function, answers with its end.

Nothing here knows how messages travel, so a child process runs the same code over a pipe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from activities.plugins.code import PackageCode, described, place_of
from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json
from kernel.wire.host import (
    Cancel,
    Done,
    HostCall,
    HostReply,
    Invoke,
    NotJson,
    ProtocolError,
    clean,
    decode,
    encode,
)
from turnwright.sdk.clients import Signal
from turnwright.sdk.context import function_context, tool_context
from turnwright.sdk.errors import ToolError

Receive = Callable[[], Awaitable[str]]
Send = Callable[[str], None]


async def serve(code: PackageCode, receive: Receive, send: Send) -> None:
    """Run one invocation: read its `Invoke`, end with its `Done`."""
    first = decode(await receive())
    if not isinstance(first, Invoke):
        raise TurnwrightError(Code.WIRE_MALFORMED, f"expected an invoke, got {first.type!r}")
    calls = _Calls(send)
    work = asyncio.create_task(_run(code, first, calls))
    reader = asyncio.create_task(_read(receive, calls, work))
    try:
        done = await work
    finally:
        work.cancel()
        reader.cancel()
        calls.close()
    send(_encoded(done))


async def _read(receive: Receive, calls: _Calls, work: asyncio.Task[Done]) -> None:
    while True:
        match decode(await receive()):
            case HostReply() as reply:
                calls.answer(reply)
            case Cancel():
                calls.signal.abort()
                work.cancel()
            case _:
                pass


class _Calls:
    """The open calls of one invocation."""

    def __init__(self, send: Send) -> None:
        self.signal = Signal()
        self._send = send
        self._open: dict[int, asyncio.Future[Json]] = {}
        self._sent = 0
        self._closed = False

    async def call(self, method: str, params: dict[str, Json]) -> Json:
        """Ask the host; a refusal raises `ToolError`."""
        self._sent += 1
        number = self._sent
        self._post(HostCall(id=number, method=method, params=_params(method, params)))
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._open[number] = future
        try:
            return await future
        finally:
            self._open.pop(number, None)

    def tell(self, method: str, params: dict[str, Json]) -> None:
        """Tell the host; what cannot be told is dropped, a log line fails no run."""
        with suppress(ToolError):
            self._post(HostCall(method=method, params=_params(method, params)))

    def answer(self, reply: HostReply) -> None:
        """Hand a reply to the call that waits for it."""
        future = self._open.get(reply.id)
        if future is None or future.done():
            return
        if reply.error is None:
            future.set_result(reply.result)
        else:
            future.set_exception(ToolError(reply.error.code, reply.error.message))

    def close(self) -> None:
        """The invocation is over: a task that the code left behind can ask nothing any more."""
        self._closed = True
        for future in self._open.values():
            future.cancel()

    def _post(self, call: HostCall) -> None:
        if self._closed:
            raise ToolError(Code.TOOL_CANCELLED, "the run is over")
        try:
            self._send(encode(call))
        except TurnwrightError as error:
            raise ToolError(error.code, error.message) from None


def _params(method: str, params: dict[str, Json]) -> dict[str, Json]:
    try:
        return dict(clean(params))
    except NotJson as error:
        raise ToolError(error.code, f"{method}: {error}") from None


async def _run(code: PackageCode, invoke: Invoke, calls: _Calls) -> Done:
    try:
        result = clean(await _called(code, invoke, calls))
    except asyncio.CancelledError:
        if calls.signal.aborted:
            return _failure(Code.TOOL_CANCELLED, "cancelled")
        return _failure(Code.RUNTIME_FAILED, "the code cancelled itself")
    except NotJson as error:
        return _failure(Code.RUNTIME_OUTPUT, f"the result is not usable: {error}")
    except _BadArguments as error:
        return _failure(Code.TOOL_VALIDATION, str(error))
    except TurnwrightError as error:
        return _failure(error.code, str(error.message))
    except ToolError as error:
        return Done(error=ProtocolError(code=str(error.code), message=str(error.message), raised=True))
    # SystemExit and KeyboardInterrupt too: they would end the worker, not the run.
    except BaseException as error:
        return _failure(Code.RUNTIME_FAILED, _placed(error, code))
    return Done(result=result)


async def _called(code: PackageCode, invoke: Invoke, calls: _Calls) -> Any:
    if invoke.kind == "tool":
        tool = code.tool(invoke.name)
        context = tool_context(invoke.context, calls.call, calls.tell, calls.signal)
        return await tool.handler(_arguments(tool.model, invoke.args), context)
    function = code.function(invoke.kind, invoke.module)
    return await function(function_context(invoke.context, calls.call, calls.tell, calls.signal))


class _BadArguments(Exception):
    """The model refused a tool's arguments."""


def _arguments(model: Any, args: Json) -> Any:
    if model is None:
        return args
    try:
        return model.model_validate(args)
    except ValidationError as error:
        fields = (f"{'/'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise _BadArguments("; ".join(fields)) from None


def _placed(error: BaseException, code: PackageCode) -> str:
    place = place_of(error, code.folder)
    return f"{place}: {described(error)}" if place else described(error)


def _failure(code: Code, message: str) -> Done:
    return Done(error=ProtocolError(code=code, message=message[:300]))


def _encoded(done: Done) -> str:
    try:
        return encode(done)
    except TurnwrightError as error:
        return encode(_failure(Code.RUNTIME_OUTPUT, f"the result is not usable: {error.message}"))
