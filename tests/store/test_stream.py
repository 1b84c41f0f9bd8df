from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, event, text

from kernel.errors import Code, TurnwrightError
from store import stream
from store.engine import Store
from store.stream import Piece, StreamOffset, StreamWriter, follow
from tests.store.processes import run_python


@pytest.fixture
async def reader(url: str) -> AsyncIterator[Store]:
    """Another process's view of the database, as far as waking goes."""
    opened = await Store.open(url)
    yield opened
    await opened.close()


async def read_all(store: Store, after: StreamOffset | None = None) -> list[Piece]:
    return [piece async for piece in follow(store, "t", after=after)]


def said(pieces: list[Piece], runtime_id: str = "story") -> str:
    """What a reader shows in the end."""
    shown = ""
    for piece in pieces:
        if piece.runtime_id == runtime_id:
            shown = "" if piece.kind == "reset" else shown + piece.text
    return shown


async def write(store: Store, *texts: str, attempt: int = 1, runtime_id: str = "story") -> None:
    async with StreamWriter(store, "t", runtime_id, attempt) as writer:
        for part in texts:
            writer.add("text", part)


async def end(store: Store) -> None:
    async with store.write() as conn:
        await stream.finish(conn, "t")
        await stream.finish(conn, "t")


@contextmanager
def looking() -> Iterator[asyncio.Event]:
    """Set once any reader has looked for pieces."""
    looked = asyncio.Event()

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT stream.owner_id"):
            looked.set()

    event.listen(Engine, "after_cursor_execute", note)
    yield looked
    event.remove(Engine, "after_cursor_execute", note)


async def test_a_late_reader_gets_the_whole_stream(store: Store) -> None:
    await write(store, "Once ", "upon\x00 ", "a time.")
    await end(store)
    assert said(await read_all(store)) == "Once upon\ufffd a time."


async def test_the_first_piece_reaches_a_reader_at_once(
    store: Store, reader: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits neither for its batch to end nor for the reader's safety poll."""
    monkeypatch.setattr(stream, "BATCH_S", 3_600)
    monkeypatch.setattr(stream, "SAFETY_POLL_S", 3_600)
    pieces = follow(reader, "t")
    with looking() as looked:
        waiting = asyncio.create_task(anext(pieces))
        await looked.wait()
    writer = StreamWriter(store, "t", "story", 1)
    writer.add("text", "Once")
    assert (await waiting).text == "Once"
    await writer.close()
    await pieces.aclose()


async def test_later_pieces_are_written_in_batches(store: Store) -> None:
    async with StreamWriter(store, "t", "story", 1) as writer:
        writer.add("text", "first")
        await anext(follow(store, "t"))
        for part in "abc":
            writer.add("text", part)
        writer.add("thinking", "hm")
        writer.add("text", "")
    await end(store)
    pieces = await read_all(store)
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("text", "first"),
        ("text", "abc"),
        ("thinking", "hm"),
    ]
    assert [piece.sequence for piece in pieces] == [1, 2, 3]


async def test_many_readers_follow_while_it_is_written(
    store: Store, reader: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BATCH_S", 0.001)
    first = follow(store, "t")
    following = [asyncio.create_task(read_all(view)) for view in (store, reader, reader)]
    async with StreamWriter(store, "t", "story", 1) as writer:
        for number in range(30):
            writer.add("text", f"{number} ")
            await anext(first)
    await write(store, "aside", runtime_id="another")
    await end(store)
    expected = "".join(f"{number} " for number in range(30))
    for pieces in await asyncio.wait_for(asyncio.gather(*following), 10):
        assert said(pieces) == expected
        assert said(pieces, "another") == "aside"


async def test_reading_goes_on_behind_an_offset(store: Store) -> None:
    await write(store, "one ")
    await write(store, "aside", runtime_id="another")
    seen: list[Piece] = []
    async for piece in follow(store, "t"):
        seen.append(piece)
        if len(seen) == 2:
            break
    await write(store, "two")
    await end(store)
    rest = await read_all(store, StreamOffset.parse(str(seen[-1].offset)))
    assert [piece.text for piece in rest] == ["two"]
    assert said(seen + rest) == "one two"


async def test_a_new_attempt_takes_back_what_was_said(store: Store) -> None:
    await write(store, "Once upon")
    await write(store, "It was", attempt=2)
    await end(store)
    pieces = await read_all(store)
    assert [piece.kind for piece in pieces] == ["text", "reset", "text"]
    assert said(pieces) == "It was"


async def test_a_silent_new_attempt_takes_back_what_was_said(store: Store) -> None:
    await write(store, "Once upon")
    await write(store, attempt=2)
    await end(store)
    assert said(await read_all(store)) == ""


async def test_a_superseded_writer_writes_nothing(store: Store) -> None:
    await write(store, "It was", attempt=2)
    await write(store, "zombie", attempt=1)
    await end(store)
    assert said(await read_all(store)) == "It was"


async def test_the_same_attempt_goes_on_where_it_ended(store: Store) -> None:
    await write(store, "one ")
    await write(store, "two")
    await end(store)
    pieces = await read_all(store)
    assert [piece.sequence for piece in pieces] == [1, 2]
    assert said(pieces) == "one two"


_WRITE = """
import asyncio, sys
from store.engine import Store
from store.stream import StreamWriter, finish, follow

async def main():
    store = await Store.open(sys.argv[1])
    own = follow(store, "t")
    async with StreamWriter(store, "t", "story", 1) as writer:
        for number in range(5):
            writer.add("text", str(number))
            await anext(own)
    async with store.write() as conn:
        await finish(conn, "t")
    await store.close()

asyncio.run(main())
"""


async def test_a_reader_follows_another_process(store: Store, url: str) -> None:
    following = asyncio.create_task(read_all(store))
    assert await run_python(_WRITE, url) == 0
    assert said(await asyncio.wait_for(following, 5)) == "01234"


async def test_text_that_could_not_be_written_is_written_later(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async with StreamWriter(store, "t", "story", 1) as writer:
        async with store.write() as conn:
            await conn.execute(text("ALTER TABLE stream RENAME TO away"))
        writer.add("text", "one ")
        async with asyncio.timeout(10):
            while "is late" not in caplog.text:
                await asyncio.sleep(0)
        async with store.write() as conn:
            await conn.execute(text("ALTER TABLE away RENAME TO stream"))
        writer.add("text", "two")
    await end(store)
    assert said(await read_all(store)) == "one two"


async def test_a_forgotten_stream_is_empty(store: Store) -> None:
    await write(store, "one")
    async with store.write() as conn:
        await stream.forget(conn, "t")
        await stream.finish(conn, "t")
    assert await read_all(store) == []


@pytest.mark.slow
async def test_readers_go_on_when_the_listening_connection_is_lost(postgres_base, reader: Store) -> None:
    if reader.dialect == "sqlite":
        return
    following = asyncio.create_task(read_all(reader))
    await write(reader, "one ")
    async with reader.write() as conn:
        await conn.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        )
    await write(reader, "two")
    await end(reader)
    assert said(await asyncio.wait_for(following, 5)) == "one two"


@pytest.mark.parametrize("given", ["", "{", "[1]", '[["a"]]', '[["a", "x", 1]]'])
def test_a_broken_offset_is_refused(given: str) -> None:
    with pytest.raises(TurnwrightError) as refusal:
        StreamOffset.parse(given)
    assert refusal.value.code == Code.WIRE_MALFORMED
