"""The host's side of the protocol: runs one function of a package under a time limit.

Every ending becomes a value or a `TurnwrightError`; only our own defects and a lost store travel as they
are, so that the activity's retry owns them (DESIGN §4, rules 3 and 4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from activities.plugins.channel import InProcess, Transport
from activities.plugins.child.code import IsolatedCode
from activities.plugins.code import PackageCode
from activities.plugins.methods import check_parameters
from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json
from kernel.wire.host import (
    METHODS,
    Cancel,
    Done,
    HostCall,
    HostReply,
    Invoke,
    ProtocolError,
    decode,
    encode,
)

Method = Callable[[dict[str, Json]], Awaitable[Json]]
"""Answers one method of the protocol; a refusal is a `TurnwrightError`."""

GRACE_S: Final = 0.5
"""What stopped code gets for its clean-up."""

TICK_S: Final = 1.0

READING: Final = frozenset({"plugin_data.get", "plugin_data.list", "state.get", "log"})
"""The methods of a guard. Spec: plugin-model §23."""

_OURS: Final = frozenset({"store", "internal"})
_SPEAKABLE: Final = frozenset({"commit", "feature", "handler", "model", "package", "runtime", "tool", "wire"})


async def invoke(
    package_code: PackageCode | IsolatedCode,
    invoke: Invoke,
    methods: Mapping[str, Method],
    *,
    timeout_s: float,
    on_tick: Callable[[], None] | None = None,
) -> Json:
    """Run one function of a package, where its code lives.

    Args:
        methods: what the code may call, by name; a method that is missing here is refused to it.
        timeout_s: seconds that the run may take, its host calls included.
        on_tick: called at once and then every second while the code runs.

    Returns:
        the function's result, as JSON.

    Raises:
        TurnwrightError: `runtime.failed` (with the package's file and line), `runtime.timeout`,
            `runtime.output-schema-invalid`, `tool.validation`, or the code of a `ToolError`; a word of the
            package's own becomes `tool.failed` or `runtime.failed` with `details["code"]`. Of a package that
            is not bundled also `package.approval-required` and what starting its process raises.
        asyncio.CancelledError: after the code was cancelled and had its moment.
        Exception: what a method raised that is no `TurnwrightError`, or one of the store.
    """
    if isinstance(package_code, PackageCode):
        transport: Transport = InProcess(package_code)
    else:
        transport = await package_code.connect(invoke.context.session_id)
    return await invoke_over(transport, invoke, methods, timeout_s=timeout_s, on_tick=on_tick)


async def invoke_over(
    transport: Transport,
    invoke: Invoke,
    methods: Mapping[str, Method],
    *,
    timeout_s: float,
    on_tick: Callable[[], None] | None = None,
) -> Json:
    """As `invoke`, over any transport."""
    conversation = _Conversation(transport, invoke, methods)
    ticker = asyncio.create_task(_tick(on_tick))
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            done = await conversation.run()
    except TimeoutError:
        if not limit.expired():
            raise
        message = f"the code took longer than {timeout_s:g} s"
        raise TurnwrightError(Code.RUNTIME_TIMEOUT, message, where=_where(invoke)) from None
    finally:
        ticker.cancel()
        await conversation.end()
    return _value(done, invoke)


async def _tick(on_tick: Callable[[], None] | None) -> None:
    while on_tick is not None:
        on_tick()
        await asyncio.sleep(TICK_S)


class _Conversation:
    """One invocation: the messages back and forth, and the calls that are being answered."""

    def __init__(self, transport: Transport, invoke: Invoke, methods: Mapping[str, Method]) -> None:
        self._transport = transport
        self._invoke = invoke
        self._methods = methods
        self._answers: set[asyncio.Task[None]] = set()
        self._told: set[asyncio.Task[None]] = set()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over = False

    async def run(self) -> Done:
        """Send the invocation, answer calls, and return its end."""
        self._transport.send(encode(self._invoke))
        while True:
            text = await self._receive()
            if text is None:
                message = "the code ended without a result"
                raise TurnwrightError(Code.RUNTIME_FAILED, message, where=_where(self._invoke))
            match decode(text):
                case HostCall() as call:
                    self._start(call)
                case Done() as done:
                    self._over = True
                    await asyncio.gather(*self._told)
                    return done
                case _:
                    pass

    async def end(self) -> None:
        """Stop the code when it still runs, and every call that it left open."""
        if not self._over:
            self._transport.send(encode(Cancel()))
        for task in self._answers | self._told:
            task.cancel()
        try:
            await self._transport.close(0 if self._over else GRACE_S)
        finally:
            self._broken.cancel()
        await asyncio.gather(*self._answers, *self._told, return_exceptions=True)

    async def _receive(self) -> str | None:
        """The next message; a method that failed as only we can fail ends the conversation."""
        received = asyncio.create_task(self._transport.receive())
        try:
            ends: tuple[asyncio.Future[Any], ...] = (received, self._broken)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._broken.done():
                self._broken.result()
            return received.result()
        finally:
            received.cancel()

    def _start(self, call: HostCall) -> None:
        kind = self._told if call.id is None else self._answers
        task = asyncio.create_task(self._answer(call))
        kind.add(task)
        task.add_done_callback(kind.discard)

    async def _answer(self, call: HostCall) -> None:
        try:
            method = self._method(call.method)
            check_parameters(call.method, call.params)
            result, error = await method(call.params), None
        except TurnwrightError as refused:
            if refused.code.partition(".")[0] in _OURS:
                self._break(refused)
                return
            result, error = None, ProtocolError(code=refused.code, message=_explained(refused))
        except Exception as defect:
            self._break(defect)
            return
        if call.id is not None:
            self._transport.send(_encoded(HostReply(id=call.id, result=result, error=error)))

    def _method(self, name: str) -> Method:
        allowed = self._invoke.kind != "guard" or name in READING
        if allowed and name in METHODS and (found := self._methods.get(name)) is not None:
            return found
        names = READING & self._methods.keys() if self._invoke.kind == "guard" else self._methods.keys()
        message = f"{name[:80]!r} is not available to this {self._invoke.kind}"
        raise TurnwrightError(Code.HANDLER_CAPABILITY, message, accepted=", ".join(sorted(names)))

    def _break(self, error: Exception) -> None:
        if not self._broken.done():
            self._broken.set_exception(error)


def _encoded(reply: HostReply) -> str:
    try:
        return encode(reply)
    except TurnwrightError as error:
        return encode(HostReply(id=reply.id, error=ProtocolError(code=error.code, message=_explained(error))))


def _value(done: Done, invoke: Invoke) -> Json:
    if done.error is None:
        return done.result
    code, details = _code(done.error, invoke)
    message = done.error.message or done.error.code
    raise TurnwrightError(code, message[:300], where=_where(invoke), details=details)


def _code(error: ProtocolError, invoke: Invoke) -> tuple[Code, Any]:
    """The code of an ending: package code may say only what concerns a run."""
    with suppress(ValueError):
        if error.code.partition(".")[0] in _SPEAKABLE:
            return Code(error.code), None
    general = Code.TOOL_FAILED if invoke.kind == "tool" else Code.RUNTIME_FAILED
    return general, {"code": error.code[:80]}


def _explained(error: TurnwrightError) -> str:
    return f"{error.message} (accepted: {error.accepted})" if error.accepted else error.message


def _where(invoke: Invoke) -> str:
    runtime = invoke.context.runtime_id
    return f"{runtime} tool {invoke.name}" if invoke.kind == "tool" else runtime
