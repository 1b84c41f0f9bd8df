"""The frozen generation of a turn: what `open_turn` wrote, read once per process.

Every activity of a run starts here: which package content, which bindings, which action.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from activities.catalog import Catalog, LivePackage
from kernel.catalog.contracts import resolved
from kernel.errors import Code, TurnwrightError
from kernel.manifest import Runtime
from kernel.manifest.schemas import Schema
from kernel.wire.turn import PlanInput, RuntimePlan
from store import turns
from store.engine import Store
from store.sessions import Session
from store.turns import Action, Turn

_KEPT = 512


@dataclass(frozen=True)
class Generation:
    """Everything that is fixed for a turn.

    Attributes:
        active: package id → digest.
        bindings: slot or runtime id → slot that answers for it.
        settings: package id → key → value, of the packages that declare settings.
        plan: what the turn's graph is built from.
    """

    session_id: str
    turn_id: str
    logical_turn: int
    locale: str
    opened_at: float
    action: Action
    active: Mapping[str, str]
    bindings: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Any]]
    plan: PlanInput

    def slot(self, runtime_id: str, name: str) -> str:
        """The slot that answers for a runtime's slot name."""
        return self.bindings.get(runtime_id) or self.bindings.get(name) or name

    def runtime_plan(self, runtime_id: str) -> RuntimePlan:
        """The plan of one runtime.

        Raises:
            TurnwrightError: `runtime.unknown`.
        """
        for runtime in self.plan.runtimes:
            if runtime.runtime_id == runtime_id:
                return runtime
        raise TurnwrightError(Code.RUNTIME_UNKNOWN, f"no active runtime {runtime_id!r}")


@dataclass(frozen=True)
class Place:
    """Where an activity works: one run of one turn or job.

    Attributes:
        owner_id: the turn, or the job, that the run belongs to.
    """

    generation: Generation
    owner_id: str
    live: LivePackage
    runtime: Runtime

    @property
    def session_id(self) -> str:
        return self.generation.session_id

    @property
    def turn_id(self) -> str:
        return self.generation.turn_id

    @property
    def runtime_id(self) -> str:
        return self.runtime.id

    @property
    def package_id(self) -> str:
        return self.live.package.id


class Generations:
    """Reads generations; they never change, so each is read once."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self.catalog = catalog
        self._known: OrderedDict[str, Generation] = OrderedDict()

    async def of(self, turn_id: str) -> Generation:
        """The generation of an opened turn.

        Raises:
            TurnwrightError: `turn.unknown`.
        """
        if turn_id not in self._known:
            async with self._store.read() as conn:
                turn = await turns.require_turn(conn, turn_id)
                action = await turns.get_action(conn, turn_id)
            if action is None:
                raise TurnwrightError(Code.TURN_UNKNOWN, f"turn {turn_id} has no action")
            self.keep(turn, action)
        return self._known[turn_id]

    def keep(self, turn: Turn, action: Action) -> Generation:
        """Remember the generation of a turn that is open in the store."""
        generation = self._known[turn.turn_id] = _generation(turn, action)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return generation

    async def place(self, turn_id: str, runtime_id: str, job_id: str | None = None) -> Place:
        """Where a run works.

        Raises:
            TurnwrightError: `turn.unknown`, `runtime.unknown`, or what loading its package raises.
        """
        generation = await self.of(turn_id)
        package_id = runtime_id.partition("/")[0]
        digest = generation.active.get(package_id)
        if digest is None:
            raise TurnwrightError(Code.RUNTIME_UNKNOWN, f"no active package has a runtime {runtime_id!r}")
        live = await self.catalog.live(package_id, digest)
        runtime = resolved(live.runtime(runtime_id), await self._borrowed(generation))
        return Place(generation, job_id or turn_id, live, runtime)

    async def _borrowed(self, generation: Generation) -> dict[str, Schema]:
        found = {}
        for contract, package_id in generation.plan.borrowed.items():
            live = await self.catalog.live(package_id, generation.active[package_id])
            found[contract] = live.package.contract_schemas[contract]
        return found


def frozen(session: Session, settings: Mapping[str, Any], plan: PlanInput) -> dict[str, Any]:
    """A generation as it is stored with its turn."""
    return {
        "active": session.active,
        "bindings": session.bindings or {},
        "locale": session.locale,
        "settings": settings,
        "plan": plan.model_dump(mode="json", exclude_unset=True),
    }


def _generation(turn: Turn, action: Action) -> Generation:
    stored = turn.generation
    return Generation(
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        logical_turn=turn.logical_turn,
        locale=stored["locale"],
        opened_at=turn.created_at,
        action=action,
        active={entry["package_id"]: entry["digest"] for entry in stored["active"]},
        bindings=stored["bindings"],
        settings=stored.get("settings", {}),
        plan=PlanInput.model_validate(stored["plan"]),
    )
