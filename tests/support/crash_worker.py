"""A worker process that kills itself, once, at a point that a test armed for a session.

    python -m tests.support.crash_worker            one worker, as `python -m worker`
    python -m tests.support.crash_worker --forks    starts workers on demand (`tests.support.worker_forks`)

`arm(home, session_id, point)` leaves a file; whichever process reaches the point first takes the file away
and sends itself SIGKILL, so exactly one process dies, once. A point is a place, a moment and how often:

    place     the activity, with the step of `call_model` and the name of `run_tool`: `call_model 1`
    moment    `started`, `returned` (its result is not reported yet)
              `answer begun`, `answer piece`, `answer read`: of a response to a model call
              `own data read`: a tool or a handler has read its package's data
              `before insert calls`, `after update calls`: of the commit of a transaction with that statement
    number    the how-manieth time within the execution, from 1
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

import worker
from activities.own_data import OwnData
from kernel.wire import names
from kernel.wire.agent import CallModel, RunTool
from link.exit import leave
from link.settings import load_settings
from store.engine import Store
from tests.support import worker_forks

_WRITES = {"INSERT", "UPDATE", "DELETE"}


@dataclass(frozen=True)
class Point:
    """Where a process dies."""

    place: str
    moment: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.place}|{self.moment}|{self.number}"


def arm(home: Path, session_id: str, point: Point) -> Path:
    """Let the process that first reaches the point die; the file is gone once one has."""
    file = _armed(home, session_id)
    file.parent.mkdir(exist_ok=True)
    file.write_text(str(point))
    return file


@dataclass
class _Visit:
    """One execution of an activity."""

    home: Path
    session_id: str
    place: str
    seen: Counter[str] = field(default_factory=Counter)

    def reach(self, moment: str) -> None:
        self.seen[moment] += 1
        file = _armed(self.home, self.session_id)
        try:
            if file.read_text() != str(Point(self.place, moment, self.seen[moment])):
                return
            file.unlink()
        except FileNotFoundError:
            return  # nothing armed, or another process was first
        os.kill(os.getpid(), signal.SIGKILL)


_visit: ContextVar[_Visit | None] = ContextVar("visit", default=None)
_statements: ContextVar[dict[str, None] | None] = ContextVar("statements", default=None)


class KillAt(Interceptor):
    """Notes which activity runs, for every other hook here."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Activities(next, self._home)


class _Activities(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, home: Path) -> None:
        super().__init__(next)
        self._home = home

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        name = input.fn.__name__
        _visit.set(_Visit(self._home, getattr(input.args[0], "session_id", ""), _place(name, input.args[0])))
        _reach("started")
        result = await super().execute_activity(input)
        _reach("returned")
        return result


def _place(name: str, argument: Any) -> str:
    if isinstance(argument, CallModel):
        return f"{names.CALL_MODEL} {argument.step}"
    return f"{names.RUN_TOOL} {argument.name}" if isinstance(argument, RunTool) else name


def _reach(moment: str) -> None:
    if visit := _visit.get():
        visit.reach(moment)


def _armed(home: Path, session_id: str) -> Path:
    return home / "armed" / session_id


# Hooks below the activities


def install_hooks() -> None:
    """Watch transactions, model responses and reads of own data in this process."""
    write, send, get = Store.write, httpx.AsyncHTTPTransport.handle_async_request, OwnData.get

    @asynccontextmanager
    async def watched_write(store: Store) -> AsyncIterator[Any]:
        with _noting() as statements:
            async with write(store) as conn:
                yield conn
                for statement in statements:
                    _reach(f"before {statement}")
            for statement in statements:
                _reach(f"after {statement}")

    async def watched_send(transport: Any, request: httpx.Request) -> httpx.Response:
        response = await send(transport, request)
        _reach("answer begun")
        response.stream = _WatchedStream(response.stream)
        return response

    async def watched_get(own: OwnData, namespace: str, key: str) -> Any:
        value = await get(own, namespace, key)
        _reach("own data read")
        return value

    Store.write = watched_write  # type: ignore[method-assign]
    httpx.AsyncHTTPTransport.handle_async_request = watched_send  # type: ignore[method-assign]
    OwnData.get = watched_get  # type: ignore[method-assign]
    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", _note)


@contextmanager
def _noting() -> Iterator[dict[str, None]]:
    statements: dict[str, None] = {}
    token = _statements.set(statements)
    try:
        yield statements
    finally:
        _statements.reset(token)


def _note(_conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
    words = statement.split(maxsplit=3)
    if (statements := _statements.get()) is not None and words[0] in _WRITES:
        statements[f"{words[0].lower()} {words[1 if words[0] == 'UPDATE' else 2]}"] = None


class _WatchedStream(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece
            _reach("answer piece")
        _reach("answer read")

    async def aclose(self) -> None:
        await self._stream.aclose()


def main() -> None:
    """Run one worker until a signal, or until its point."""
    logging.basicConfig(level=os.environ.get("TURNWRIGHT_LOG_LEVEL", "INFO"), stream=sys.stderr)
    install_hooks()
    settings = load_settings()
    asyncio.run(worker.run(settings, (KillAt(settings.home),), settings.packages.path))
    leave(0)


if __name__ == "__main__":
    if "--forks" in sys.argv:
        worker_forks.serve(main)
    else:
        main()
