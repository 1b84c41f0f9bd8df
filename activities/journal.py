"""The effect journal of one function run: what it bought once is replayed, never bought again.

A call is known by its content key and its repeat number, so an inserted call costs one live call, and
reordered or parallel calls still replay (DECISIONS 16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from activities.generations import Place
from kernel.errors import Code, TurnwrightError
from kernel.identity import journal_key, journal_ordinal
from kernel.wire.base import Json
from store import journal
from store.connection import Connection
from store.engine import Store


@dataclass(frozen=True)
class Effect:
    """A call while it is performed.

    Attributes:
        ordinal: names this call within the run, also after a crash.
        writes: what its result is recorded together with, in one transaction.
    """

    ordinal: int
    writes: list[Callable[[Connection], Awaitable[None]]] = field(default_factory=list)


class Journal:
    """Performs effects of one run at most once each, as far as their results were recorded."""

    def __init__(self, store: Store, place: Place) -> None:
        self._store = store
        self._place = place
        self._repeats: Counter[str] = Counter()

    async def once(self, kind: str, arguments: Json, perform: Callable[[Effect], Awaitable[Json]]) -> Json:
        """The recorded result, or the result of `perform(effect)`, recorded.

        Raises:
            TurnwrightError: what `perform` raised, now or when it was recorded.
        """
        key = journal_key(kind, arguments)
        repeat = self._repeats[key]
        self._repeats[key] += 1
        run = (self._place.owner_id, self._place.runtime_id, key, repeat)
        async with self._store.write() as conn:
            recorded = await journal.begin(conn, *run, kind=kind)
        if recorded.status != "done":
            effect = Effect(journal_ordinal(key, repeat))
            result = await _result(perform(effect))
            async with self._store.write() as conn:
                for write in effect.writes:
                    await write(conn)
                recorded = await journal.finish(conn, *run, result=result)
        return _unwrap(recorded.result)


async def _result(work: Awaitable[Json]) -> Json:
    try:
        return {"value": await work}
    except TurnwrightError as error:
        return {"error": {"code": error.code, "message": error.message}}


def _unwrap(result: Json) -> Json:
    if "error" in result:
        raise TurnwrightError(Code(result["error"]["code"]), result["error"]["message"])
    return result["value"]
