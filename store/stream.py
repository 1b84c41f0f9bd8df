"""Live text: written while a model speaks, read by anyone who watches, never the durable record.

StreamWriter        one run's text of one attempt, written in batches
finish              marks the end of a turn's or job's stream, with the commit that ends it
follow              reads a stream from any point until its end
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from sqlalchemy import ColumnElement, Row, and_, delete, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from kernel.errors import Code, TurnwrightError
from store import rows
from store.connection import Connection
from store.engine import Store
from store.tables import stream
from store.wakes import notify

Kind = Literal["text", "tool", "thinking", "reset"]

BATCH_S = 0.075
"""Time between two writes of one writer."""
SAFETY_POLL_S = 1.0
"""How often a PostgreSQL reader looks although nothing woke it: a notification can be lost."""
_PAGE = 500
_END = "end"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StreamOffset:
    """How far a reader has come: the last attempt and sequence by runtime."""

    positions: tuple[tuple[str, int, int], ...] = ()

    def past(self, runtime_id: str, attempt: int, sequence: int) -> StreamOffset:
        """The offset behind one more piece."""
        others = [position for position in self.positions if position[0] != runtime_id]
        return StreamOffset(tuple(sorted([*others, (runtime_id, attempt, sequence)])))

    def __str__(self) -> str:
        return json.dumps(self.positions, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The offset that `str` printed; raises `wire.malformed`."""
        try:
            found = tuple((str(name), int(attempt), int(last)) for name, attempt, last in json.loads(text))
        except (ValueError, TypeError):
            raise TurnwrightError(
                Code.WIRE_MALFORMED, "the stream offset cannot be read", accepted="an offset of a piece"
            ) from None
        return cls(found)


@dataclass(frozen=True)
class Piece:
    """A part of a stream.

    Attributes:
        kind: text, tool or thinking; `reset` takes back every earlier piece of the runtime.
        offset: hand it to `follow` to go on behind this piece.
    """

    owner_id: str
    runtime_id: str
    attempt: int
    sequence: int
    kind: Kind
    text: str
    created_at: float
    offset: StreamOffset


class StreamWriter:
    """Writes one run's live text in the background; a write that fails costs text, never the run.

    Args:
        attempt: from 1. A higher one than the stream holds begins with a `reset`; the same one goes on
            where it ended; a lower one is of a superseded worker and writes nothing. To let the text of
            earlier steps stand, keep the attempt; to take it back with every step, count the step in.
    """

    def __init__(self, store: Store, owner_id: str, runtime_id: str, attempt: int) -> None:
        self._store = store
        self._owner_id = owner_id
        self._runtime_id = runtime_id
        self._attempt = attempt
        self._pending: list[tuple[str, str]] = []
        self._next: int | None = None
        self._superseded = False
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def add(self, kind: Kind, text: str) -> None:
        """Take a piece; it is written soon, the first one at once. Never waits."""
        if not text or self._superseded or self._closing.is_set():
            return
        if self._pending and self._pending[-1][0] == kind:
            self._pending[-1] = (kind, self._pending[-1][1] + text)
        else:
            self._pending.append((kind, text))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write what is left. An attempt without a word still takes back what earlier ones said."""
        self._closing.set()
        if self._task is not None:
            await self._task
        if self._pending or (self._next is None and not self._superseded):
            await self._flush()

    async def _run(self) -> None:
        while self._pending:
            await self._flush()
            with suppress(TimeoutError):
                async with asyncio.timeout(BATCH_S):
                    await self._closing.wait()
            if self._closing.is_set():
                return

    async def _flush(self) -> None:
        batch, self._pending = self._pending, []
        try:
            async with self._store.write() as conn:
                following = await self._write(conn, batch)
        except (SQLAlchemyError, OSError) as error:
            _log.warning("live text of %s %s is late: %s", self._owner_id, self._runtime_id, error)
            self._pending = batch + self._pending
            self._next = None
            return
        self._next = following
        self._store.wakes.wake(self._owner_id)

    async def _write(self, conn: Connection, batch: list[tuple[str, str]]) -> int | None:
        """Insert a batch; returns the next sequence, None when a later attempt has taken over."""
        first = self._next
        if first is None:
            first, reset = await self._begin(conn)
            if first is None:
                self._superseded = True
                return None
            batch = [("reset", ""), *batch] if reset else batch
        run = {"owner_id": self._owner_id, "runtime_id": self._runtime_id, "attempt": self._attempt}
        new = [
            {**run, "sequence": first + index, "kind": kind, "text": text, "created_at": rows.moment(None)}
            for index, (kind, text) in enumerate(batch)
        ]
        await rows.insert_all(conn, stream, new)
        if new:
            await notify(conn, self._owner_id)
        return first + len(new)

    async def _begin(self, conn: Connection) -> tuple[int | None, bool]:
        own = (stream.c.owner_id == self._owner_id) & (stream.c.runtime_id == self._runtime_id)
        highest = select(stream.c.attempt, func.max(stream.c.sequence)).where(own)
        statement = highest.group_by(stream.c.attempt).order_by(stream.c.attempt.desc()).limit(1)
        last = (await conn.execute(statement)).first()
        if last is None or last[0] < self._attempt:
            return 1, last is not None
        return (last[1] + 1, False) if last[0] == self._attempt else (None, False)


async def finish(conn: Connection, owner_id: str) -> None:
    """Mark the end of a stream: its readers stop once they have read everything before."""
    end = {"owner_id": owner_id, "runtime_id": "", "attempt": 0, "sequence": 0, "kind": _END, "text": ""}
    await rows.insert_if_absent(conn, stream, {**end, "created_at": rows.moment(None)})
    await notify(conn, owner_id)


async def forget(conn: Connection, owner_id: str) -> None:
    """Delete a stream that nobody needs any more."""
    await conn.execute(delete(stream).where(stream.c.owner_id == owner_id))


async def follow(
    store: Store, owner_id: str, *, after: StreamOffset | None = None, poll_s: float = 0.05
) -> AsyncIterator[Piece]:
    """The pieces of a turn's or job's stream, as they come, until its end or until the caller stops.

    Args:
        after: where an earlier reading stopped; None replays from the start.
        poll_s: how often to look on SQLite; PostgreSQL notifies.
    """
    offset = after or StreamOffset()
    pause = poll_s if store.dialect == "sqlite" else SAFETY_POLL_S
    wake = store.wakes.subscribe(owner_id)
    try:
        while True:
            wake.clear()
            found = await _behind(store, owner_id, offset)
            for row in found:
                if row.kind == _END:
                    return
                offset = offset.past(row.runtime_id, row.attempt, row.sequence)
                yield _piece(row, offset)
            if not found:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await wake.wait()
    finally:
        store.wakes.unsubscribe(owner_id, wake)


async def _behind(store: Store, owner_id: str, offset: StreamOffset) -> list[Row[Any]]:
    """The next rows behind an offset, runtime by runtime; the end of the stream comes last."""
    new: list[ColumnElement[bool]] = [stream.c.runtime_id.not_in([name for name, _, _ in offset.positions])]
    for name, attempt, sequence in offset.positions:
        later = and_(stream.c.attempt == attempt, stream.c.sequence > sequence)
        new.append(and_(stream.c.runtime_id == name, or_(stream.c.attempt > attempt, later)))
    order = (stream.c.runtime_id == "", stream.c.runtime_id, stream.c.attempt, stream.c.sequence)
    statement = select(stream).where(stream.c.owner_id == owner_id, or_(*new)).order_by(*order).limit(_PAGE)
    async with store.read() as conn:
        return list(await conn.execute(statement))


def _piece(row: Row[Any], offset: StreamOffset) -> Piece:
    return Piece(
        owner_id=row.owner_id,
        runtime_id=row.runtime_id,
        attempt=row.attempt,
        sequence=row.sequence,
        kind=cast(Kind, row.kind),
        text=row.text,
        created_at=row.created_at,
        offset=offset,
    )
