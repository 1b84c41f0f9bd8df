"""`open_turn`: freeze what a turn runs with, and tell the planner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from temporalio import activity

from activities.catalog import LivePackage
from activities.following import Following
from activities.generations import Generations, frozen
from kernel.catalog import plan_input
from kernel.catalog.settings import effective, unfit
from kernel.errors import Code, TurnwrightError
from kernel.schedule import build
from kernel.wire import names
from kernel.wire.base import outline
from kernel.wire.failure import Failure
from kernel.wire.turn import OpenedTurn, PlanInput, TurnInput, TurnResult
from store import sessions, turns
from store.connection import Connection
from store.engine import Store
from store.sessions import Session
from store.turns import Action

_log = logging.getLogger(__name__)


class TurnActivities:
    """Opens turns.

    Args:
        approval_deadline_ms: how long an approval stays open.
        following: where sessions follow the folders of their packages; else they keep what they chose.
    """

    def __init__(
        self,
        store: Store,
        generations: Generations,
        *,
        approval_deadline_ms: int,
        following: Following | None = None,
    ) -> None:
        self._following = following
        self._store = store
        self._generations = generations
        self._catalog = generations.catalog
        self._approval_deadline_ms = approval_deadline_ms

    @activity.defn(name=names.OPEN_TURN)
    async def open_turn(self, turn: TurnInput) -> OpenedTurn:
        """Freeze the generation once; a repeat gets the same plan, an ended turn its receipt."""
        async with self._store.read() as conn:
            known = await turns.get_turn(conn, turn.turn_id)
            action = await turns.get_action(conn, turn.turn_id)
            session = await sessions.require(conn, turn.session_id)
        if known is None:
            if refused := _refusal(session, turn, action):
                return OpenedTurn(refused=refused)
            assert action is not None
            columns: dict[str, Any] = {}
            if self._following is not None:
                try:
                    session, columns = await self._following.followed(session)
                except TurnwrightError as error:
                    return OpenedTurn(refused=Failure(code=error.code, message=outline(error.account)))
            packages = await self._packages(session)
            plan = self._plan(session, packages, action)
            if refused := _unplannable(plan):
                return OpenedTurn(refused=refused)
            async with self._store.write() as conn:
                if columns:
                    await sessions.lock(conn, session.session_id)
                    await sessions.update(conn, session.session_id, **columns)
                known = await self._open(conn, session, packages, action, plan)
        if known.receipt is not None:
            return OpenedTurn(receipt=TurnResult.model_validate(known.receipt))
        assert action is not None
        return OpenedTurn(plan=self._generations.keep(known, action).plan)

    async def _packages(self, session: Session) -> list[LivePackage]:
        return await asyncio.gather(
            *(self._catalog.live(entry["package_id"], entry["digest"]) for entry in session.active)
        )

    def _plan(self, session: Session, live: Sequence[LivePackage], action: Action) -> PlanInput:
        return plan_input(
            [package.package for package in live],
            logical_turn=session.completed_player_turns + 1,
            gated={package.package.id: package.gated for package in live},
            bindings=session.bindings or {},
            choices=session.choices,
            approval_deadline_ms=self._approval_deadline_ms,
            manual=action.runtime_id,
        )

    async def _open(
        self,
        conn: Connection,
        session: Session,
        live: Sequence[LivePackage],
        action: Action,
        plan: PlanInput,
    ) -> turns.Turn:
        turn, _ = await turns.open_turn(
            conn,
            turn_id=action.turn_id,
            session_id=session.session_id,
            action_id=action.action_id,
            origin=action.origin,
            logical_turn=plan.logical_turn,
            generation=frozen(session, _settings(session, live), plan),
        )
        return turn


def _settings(session: Session, live: Sequence[LivePackage]) -> dict[str, dict[str, Any]]:
    """The settings that the turn runs with, by package; a world's layer comes with worlds."""
    found = {}
    for package in (one.package for one in live):
        player = session.settings.get(package.id, {})
        if package.manifest.contributes.settings:
            found[package.id] = effective(package, player, {})
        if keys := unfit(package, player):
            _log.warning(
                "session %s: settings of %s that it does not allow any more count as not set: %s",
                session.session_id,
                package.id,
                ", ".join(keys),
            )
    return found


def _unplannable(plan: PlanInput) -> Failure | None:
    """Why a manual run cannot be planned; nothing of such a turn is stored."""
    if plan.manual is None:
        return None
    try:
        build(plan)
    except TurnwrightError as error:
        return Failure(code=error.code, message=outline(error.account))
    return None


def _refusal(session: Session, turn: TurnInput, action: Action | None) -> Failure | None:
    """Why this turn may not open, if it may not."""
    if action is None:
        return Failure(code=Code.TURN_UNKNOWN, message=f"turn {turn.turn_id} has no stored action")
    if session.incarnation != turn.incarnation:
        return Failure(
            code=Code.SESSION_STALE, message=f"session {session.session_id} has another incarnation"
        )
    if session.status == "ended":
        return Failure(code=Code.SESSION_ENDED, message=f"session {session.session_id} has ended")
    return None
