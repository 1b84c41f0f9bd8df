"""A package's own data as one run sees it: committed records under the run's own staged writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from activities.generations import Place
from kernel.commit.overlay import Deleted, RecordKey, own_writes
from kernel.commit.proposals import (
    PluginData,
    PluginDataBatch,
    Proposal,
    check_namespace,
    parse_proposal,
    proposal_json,
)
from kernel.errors import Code, TurnwrightError
from kernel.schemas import problem
from kernel.wire.base import Json
from store import data, runs, state
from store.connection import Connection
from store.engine import Store

LIST_LIMIT = 50
MOST_LISTED = 500


class OwnData:
    """Reads with the run's writes laid over; writes are staged in `staged` until the caller stores them.

    Args:
        conn: an open transaction to read in; without one each read opens its own.
        owner_code: the package's code asks, not a model: `_hidden.<name>` is in its reach.
    """

    def __init__(
        self, store: Store, place: Place, conn: Connection | None = None, *, owner_code: bool = True
    ) -> None:
        self._store = store
        self._place = place
        self._conn = conn
        self._owner_code = owner_code
        self._earlier: list[dict[str, Any]] | None = None
        self._below: OwnData | None = None
        self.staged: list[dict[str, Any]] = []

    def layer(self) -> OwnData:
        """A view for one call among several at once: it reads this one's writes, and stages apart."""
        layer = OwnData(self._store, self._place, self._conn, owner_code=self._owner_code)
        layer._below = self
        return layer

    async def get(self, namespace: str, key: str) -> Json:
        """The record's value, or None."""
        self._check_readable(namespace)
        async with self._reading() as conn:
            writes = await self._writes(conn)
            if (namespace, key) in writes:
                value = writes[namespace, key]
                return None if isinstance(value, Deleted) else value
            record = await data.get(conn, self._place.session_id, self._place.package_id, namespace, key)
        return record.value if record else None

    async def list_records(
        self, namespace: str, *, prefix: str = "", after: str | None = None, limit: int = LIST_LIMIT
    ) -> list[dict[str, Json]]:
        """`{key, value}` rows in key order."""
        self._check_readable(namespace)
        limit = max(1, min(limit, MOST_LISTED))
        async with self._reading() as conn:
            writes = await self._writes(conn)
            page = await data.list_records(
                conn,
                self._place.session_id,
                self._place.package_id,
                namespace,
                prefix=prefix,
                limit=limit + len(writes),
                cursor=after,
            )
        found: dict[str, Json | Deleted] = {record.key: record.value for record in page.records}
        for (written, key), value in writes.items():
            if written == namespace and key.startswith(prefix) and (after is None or key > after):
                found[key] = value
        rows = [{"key": key, "value": found[key]} for key in sorted(found)]
        return [row for row in rows if not isinstance(row["value"], Deleted)][:limit]

    def set(self, namespace: str, key: str, value: Json) -> None:
        """Stage one record."""
        self.stage({"type": "plugin.data", "namespace": namespace, "key": key, "value": value})

    def set_batch(self, items: list[Mapping[str, Json]]) -> None:
        """Stage several records as one change."""
        self.stage({"type": "plugin.data.batch", "items": [dict(item) for item in items]})

    def delete(self, namespace: str, key: str) -> None:
        """Stage a deletion."""
        self.stage({"type": "plugin.data.delete", "namespace": namespace, "key": key})

    def stage(self, proposal: Mapping[str, Json]) -> None:
        """Stage any proposal, judged now.

        Raises:
            TurnwrightError: the code of what a commit would refuse.
        """
        parsed = parse_proposal(dict(proposal), owner_code=self._owner_code)
        self.check(parsed)
        self.staged.append(proposal_json(parsed))

    def check(self, proposal: Proposal) -> None:
        """Hold the records that a proposal writes against `contributes.data`.

        Raises:
            TurnwrightError: `tool.validation`, with the namespace and what does not fit.
        """
        match proposal:
            case PluginData():
                self._check_schema(proposal.namespace, proposal.value)
            case PluginDataBatch():
                for item in proposal.items:
                    self._check_schema(item.namespace, item.value)

    async def session_state(self, path: str) -> Json:
        """The committed state record at a path, or None."""
        async with self._reading() as conn:
            found = await state.get(conn, self._place.session_id, path)
        return found.value if found else None

    def _check_readable(self, namespace: str) -> None:
        if not self._owner_code:
            check_namespace(namespace, owner_code=False)

    def _check_schema(self, namespace: str, value: Json) -> None:
        schema = self._place.live.package.data_schemas.get(namespace)
        if schema is not None and (found := problem(schema, value)):
            raise TurnwrightError(Code.TOOL_VALIDATION, f"the record does not fit `{namespace}`: {found}")

    async def _writes(self, conn: Connection) -> dict[RecordKey, Json | Deleted]:
        if self._earlier is None:
            rows = await runs.list_staged(conn, self._place.owner_id, [self._place.runtime_id])
            self._earlier = [row.proposal for row in rows]
        below = self._below.staged if self._below else []
        return own_writes([*self._earlier, *below, *self.staged])

    def _reading(self) -> AbstractAsyncContextManager[Connection]:
        return _given(self._conn) if self._conn is not None else self._store.read()


@asynccontextmanager
async def _given(conn: Connection) -> AsyncIterator[Connection]:
    yield conn
