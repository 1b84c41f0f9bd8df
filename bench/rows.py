"""What is measured, row by row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench import package_rows, script, validation
from bench.measure import Clock, Sample, Series, interleaved, progress
from bench.processes import Child
from bench.product import BULK, NOTES, PROPOSALS, Session
from bench.report import Row
from bench.stage import Stage
from kernel.schedule import build
from kernel.wire.turn import Edge, PlanInput, RuntimePlan
from store import stream

CROWD = 40
PLANNED = 1000
_LAYER = 25
KB = 1024
STOP_MS = 1_000
RECOVERY_MS = 10_000


@dataclass(frozen=True)
class Effort:
    """How many samples are taken."""

    turns: int
    crowds: int
    others: int


FULL = Effort(turns=25, crowds=5, others=5)
QUICK = Effort(turns=5, crowds=2, others=2)

Measure = Callable[[Stage, Effort], Awaitable[list[Row]]]


async def turn(stage: Stage, effort: Effort) -> list[Row]:
    """The reference turn: ten rounds that store a small record each."""
    return [
        await _time(stage, script.SMALL, "ten-round turn", effort, limit=1.05, aim=0.9),
        *await _sizes(stage, script.SMALL, "ten-round turn"),
    ]


async def large(stage: Stage, effort: Effort) -> list[Row]:
    """The same with tool results of 8 KB, which must not reach history."""
    return [
        await _time(stage, script.LARGE, "turn, 8 KB results", effort),
        *await _sizes(stage, script.LARGE, "turn, 8 KB results"),
    ]


async def crowd(stage: Stage, effort: Effort) -> list[Row]:
    """Many turns at once, in turns per second."""

    async def product() -> float:
        sessions = await asyncio.gather(*(stage.session() for _ in range(CROWD)))
        clock = Clock()
        await asyncio.gather(*(session.play(script.SMALL) for session in sessions))
        return CROWD / clock.seconds()

    async def reference() -> float:
        clock = Clock()
        await asyncio.gather(*(stage.reference(script.SMALL) for _ in range(CROWD)))
        return CROWD / clock.seconds()

    name = f"{CROWD} turns at once"
    ours, theirs = await interleaved([product, reference], times=effort.crowds, warm=1, label=name)
    return [Row(name, "turns/s", ours, theirs, limit=0.75, aim=1.0, higher=True)]


async def plan(stage: Stage, effort: Effort) -> list[Row]:
    """Planning a turn of a thousand runtimes."""
    planned = wide_plan(PLANNED)

    async def sample() -> float:
        clock = Clock()
        graph = build(planned)
        taken = clock.seconds() * 1000
        assert len(graph.nodes) == PLANNED
        return taken

    name = f"planning {PLANNED:,} runtimes"
    [ours] = await interleaved([sample], times=effort.others, warm=1, label=name)
    return [Row(name, "ms", ours)]


def wide_plan(count: int) -> PlanInput:
    """Layers of runtimes over the four stages, each needing two of the layer before."""
    stages = ("pre-turn", "narrative", "post-turn", "audit")
    runtimes = []
    for number in range(count):
        layer, column = divmod(number, _LAYER)
        stage = stages[number * len(stages) // count]
        before = [(layer - 1) * _LAYER + (column + step) % _LAYER for step in (0, 1)] if layer else []
        needs = tuple(Edge(runtime=f"many/r{index:04}") for index in before)
        runtimes.append(
            RuntimePlan(
                runtime_id=f"many/r{number:04}", stage=stage, needs=needs, writes=(f"area-{number % 50}",)
            )
        )
    return PlanInput(logical_turn=1, runtimes=tuple(runtimes))


async def delta(stage: Stage, effort: Effort) -> list[Row]:
    """From the player's words to the first word of the story at a reader in another process."""
    async with stage.store() as store:

        async def sample() -> float:
            session = await stage.session()
            clock = Clock()
            turn_id = await session.submit(script.PROSE)
            async for piece in stream.follow(store, turn_id):
                if piece.kind == "text":
                    break
            taken = clock.seconds() * 1000
            await session.result(turn_id)
            return taken

        return [await _alone("first delta at a reader", sample, effort)]


async def bulk(stage: Stage, effort: Effort) -> list[Row]:
    """A turn whose function writes many records: staged, judged and committed in one transaction."""

    async def sample() -> float:
        session = await stage.session(BULK, NOTES)
        clock = Clock()
        result = await session.play(script.PROSE)
        taken = clock.seconds() * 1000
        assert result["committed"]["data"] == PROPOSALS
        return taken

    return [await _alone(f"turn that commits {PROPOSALS} proposals", sample, effort)]


async def stop(stage: Stage, effort: Effort) -> list[Row]:
    """From a person's stop to the end of a turn whose model hangs: heard within two heartbeat throttles."""

    async def sample() -> float:
        session = await stage.session()
        turn_id = await session.submit(script.HANG)
        await stage.until_hanging()
        clock = Clock()
        await session.control("cancel-turn")
        result = await session.result(turn_id)
        assert result["status"] == "stopped"
        return clock.seconds() * 1000

    return [await _alone("stop of a hanging turn", sample, effort, limit=STOP_MS)]


async def error(stage: Stage, effort: Effort) -> list[Row]:
    """From the player's words to the named error of a turn whose model endpoint is down, retries included."""

    async def sample() -> float:
        session = await stage.session()
        await session.configure(bindings={"story": "down"})
        clock = Clock()
        result = await session.result(await session.submit(script.PROSE))
        assert result["status"] == "rejected"
        return clock.seconds() * 1000

    return [await _alone("error of a model that is down", sample, effort)]


async def drain(stage: Stage, effort: Effort) -> list[Row]:
    """From a worker's SIGTERM in a model call to the turn's result from another worker."""
    return [await _succession(stage, "SIGTERM to a result elsewhere", Child.terminate, effort)]


async def recovery(stage: Stage, effort: Effort) -> list[Row]:
    """From the death of the worker in a model call to the turn's result from another worker.

    The turn must move within ten seconds, whatever its worker held.
    """
    return [await _succession(stage, "recovery from a killed worker", Child.kill, effort, limit=RECOVERY_MS)]


ROWS: dict[str, Measure] = {
    "turn": turn,
    "large": large,
    "crowd": crowd,
    "plan": plan,
    "validate": validation.validate,
    "activation": package_rows.activation,
    "unchanged": package_rows.unchanged,
    "child": package_rows.child,
    "delta": delta,
    "bulk": bulk,
    "stop": stop,
    "error": error,
    "drain": drain,
    "recovery": recovery,
}
"""Every row by its name on the command line, in the order in which they run."""


async def _time(
    stage: Stage,
    text: str,
    name: str,
    effort: Effort,
    *,
    limit: float | None = None,
    aim: float | None = None,
) -> Row:
    async def product() -> float:
        session: Session = await stage.session()
        clock = Clock()
        await session.play(text)
        return clock.seconds() * 1000

    async def reference() -> float:
        clock = Clock()
        await stage.reference(text)
        return clock.seconds() * 1000

    ours, theirs = await interleaved([product, reference], times=effort.turns, warm=2, label=name)
    return Row(f"{name}: time", "ms", ours, theirs, limit=limit, aim=aim)


async def _sizes(stage: Stage, text: str, name: str) -> list[Row]:
    progress(f"{name}: events and bytes")
    ours = await (await stage.session()).turn_size(text)
    theirs = await stage.reference_size(text)
    return [
        Row(
            f"{name}: events",
            "events",
            Series((ours.events,)),
            Series((theirs.events,)),
            limit=120,
            of_ratio=False,
        ),
        Row(
            f"{name}: history",
            "KB",
            Series((ours.size_bytes / KB,)),
            Series((theirs.size_bytes / KB,)),
            limit=25,
            of_ratio=False,
        ),
    ]


async def _alone(name: str, sample: Sample, effort: Effort, *, limit: float | None = None) -> Row:
    [ours] = await interleaved([sample], times=effort.others, warm=1, label=name)
    return Row(name, "ms", ours, limit=limit, of_ratio=False)


async def _succession(
    stage: Stage,
    name: str,
    end: Callable[[Child], Awaitable[None]],
    effort: Effort,
    *,
    limit: float | None = None,
) -> Row:
    """Each sample ends the worker that runs; its heir finishes the turn and serves from then on."""

    async def sample() -> float:
        session = await stage.session()
        turn_id = await session.submit(script.SLOW)
        await stage.until_hanging()
        former = await stage.succeed()
        clock = Clock()
        ending = asyncio.create_task(end(former))
        await session.result(turn_id)
        taken = clock.seconds() * 1000
        await ending
        return taken

    [ours] = await interleaved([sample], times=effort.others, warm=0, label=name)
    return Row(name, "ms", ours, limit=limit, of_ratio=False)
