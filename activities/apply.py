"""Writes one run's proposals to the live rows; whatever does not fit raises, and its savepoint undoes it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from kernel.commit.ops import apply_ops
from kernel.commit.plan import RunCommit
from kernel.commit.proposals import (
    EventEmit,
    PluginData,
    PluginDataBatch,
    PluginDataDelete,
    Proposal,
    StatePatch,
)
from kernel.errors import Code, TurnwrightError
from kernel.wire.turn import CommittedCounts
from store import data, events, exports, messages, state
from store.connection import Connection
from store.engine import savepoint

Counts = dict[str, int]
_log = logging.getLogger(__name__)


class Applier:
    """Applies runs of one turn or job, and counts what changed.

    Attributes:
        told: positions in the conversation of the stories that were appended, by runtime.
    """

    def __init__(self, conn: Connection, session_id: str, turn_id: str) -> None:
        self._conn = conn
        self._session_id = session_id
        self._turn_id = turn_id
        self._total: Counts = {}
        self.told: dict[str, int] = {}

    @property
    def counts(self) -> CommittedCounts:
        """What was counted so far."""
        return CommittedCounts(**{name: count for name, count in self._total.items() if count})

    def count(self, counts: Counts) -> None:
        """Add what one committed run changed."""
        for name, number in counts.items():
            self._total[name] = self._total.get(name, 0) + number

    async def apply(self, commit: RunCommit, *, text: str | None = None) -> Counts:
        """Write a run: its story text, its proposals in order, its export.

        Raises:
            TurnwrightError: `commit.conflict`, or what the store refuses by name.
        """
        run, counts = commit.run, Counts()
        if run.story and text:
            segments = run.output.get("segments") if isinstance(run.output, dict) else None
            message = await messages.append(
                self._conn,
                self._session_id,
                turn_id=self._turn_id,
                role="story",
                text=text,
                segments=segments,
                runtime_id=run.runtime_id,
            )
            self.told[run.runtime_id] = message.position
            counts["messages"] = 1
        for proposal in _grouped(commit):
            kind, number = await self._write(run.package_id, run.runtime_id, proposal)
            counts[kind] = counts.get(kind, 0) + number
            await asyncio.sleep(0)  # on SQLite no statement waits: a large commit would hold the event loop
        if run.export and run.output is not None:
            counts["exports"] = await self._export(run.runtime_id, run.export, run.output)
        return counts

    async def _write(self, package_id: str, runtime_id: str, proposal: Proposal) -> tuple[str, int]:
        match proposal:
            case PluginDataBatch():
                items = [(item.namespace, item.key, item.value) for item in proposal.items]
                await data.overwrite(self._conn, self._session_id, package_id, items, turn_id=self._turn_id)
                return "data", len(items)
            case PluginDataDelete():
                key = (self._session_id, package_id, proposal.namespace, proposal.key)
                return "data", int(await data.remove(self._conn, *key))
            case EventEmit():
                await self._emit(runtime_id, proposal)
                return "events", 1
            case StatePatch():
                await self._patch(proposal)
                return "state", 1
        raise TurnwrightError(Code.COMMIT_PROPOSAL, f"{proposal.type} is not committed by a run")

    async def _emit(self, runtime_id: str, event: EventEmit) -> None:
        await events.append(
            self._conn,
            self._session_id,
            turn_id=self._turn_id,
            runtime_id=runtime_id,
            topic=event.topic,
            payload=event.payload,
        )

    async def _patch(self, patch: StatePatch) -> None:
        live = await state.get(self._conn, self._session_id, patch.path)
        value = apply_ops(live.value if live else None, patch.ops)
        await state.put(self._conn, self._session_id, patch.path, value=value, turn_id=self._turn_id)

    async def _export(self, runtime_id: str, name: str, output: Any) -> int:
        """Record an export; a failure of the export's own row is told, and stops nothing."""
        try:
            async with savepoint(self._conn):
                await exports.append(
                    self._conn, self._session_id, runtime_id, name, value=output, turn_id=self._turn_id
                )
        except SQLAlchemyError as error:
            _log.warning("export %s of %s was not recorded: %s", name, runtime_id, error)
            return 0
        return 1


def _grouped(commit: RunCommit) -> list[Proposal]:
    """The proposals in their order, each row of record writes as one batch."""
    grouped: list[Proposal] = []
    for proposal in commit.proposals:
        if isinstance(proposal, PluginData | PluginDataBatch):
            items = proposal.items if isinstance(proposal, PluginDataBatch) else (proposal,)
            if grouped and isinstance(grouped[-1], PluginDataBatch):
                items = (*grouped.pop().items, *items)  # type: ignore[union-attr]
            grouped.append(PluginDataBatch.model_construct(items=items))
        else:
            grouped.append(proposal)
    return grouped
