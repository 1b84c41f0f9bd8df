"""Finds runtimes of one package that wait for each other. Decision 2; catalogue G1."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernel.errors import Code
from kernel.manifest.diagnostics import Diagnostic, FieldPath
from kernel.manifest.fields import ContractReference, RuntimeReference
from kernel.manifest.loaded import Runtime


@dataclass(frozen=True, slots=True)
class Edge:
    """One reference of a runtime to a runtime or contract of the same execution.

    `gates` is whether the runtime is skipped without it: `needs` and required inputs.
    """

    at: FieldPath
    source: RuntimeReference | ContractReference
    gates: bool


def turn_edges(runtime: Runtime) -> Iterator[Edge]:
    """What a runtime waits for in its own execution: `needs`, `after` and turn-scoped inputs."""
    schedule = runtime.manifest.schedule
    for index, need in enumerate(schedule.needs):
        if need.scope == "turn":
            yield Edge(("schedule", "needs", index), need, True)
    for index, upstream in enumerate(schedule.after):
        yield Edge(("schedule", "after", index), upstream, False)
    for name, binding in runtime.manifest.io.inputs.items():
        source = binding.source
        if binding.scope == "turn" and isinstance(source, RuntimeReference | ContractReference):
            yield Edge(("io", "inputs", name), source, binding.required)


def cycle_problems(runtimes: Sequence[Runtime]) -> Iterator[Diagnostic]:
    """Yield one error for each cycle, with its path; a runtime is reported once.

    A named runtime is an edge in any stage. A contract is one only to this package's provider in the same
    stage: across stages it says nothing about order, and other packages may provide it.
    """
    graph = {runtime.id: dict(_upstreams(runtime, runtimes)) for runtime in runtimes}
    reported: set[str] = set()
    for runtime in runtimes:
        if runtime.id in reported or not (path := _shortest_cycle(runtime.id, graph)):
            continue
        reported.update(path)
        message = f"runtimes wait for each other: {' -> '.join(path)}"
        at = graph[runtime.id][path[1]]
        yield runtime.origin.problem(Code.PACKAGE_CYCLE, at, message, "an order without a circle")


def _upstreams(runtime: Runtime, runtimes: Sequence[Runtime]) -> Iterator[tuple[str, FieldPath]]:
    for edge in turn_edges(runtime):
        for other in runtimes:
            if isinstance(edge.source, RuntimeReference):
                if edge.source.runtime == other.id:
                    yield other.id, edge.at
            elif (
                edge.source.contract == other.manifest.io.output.contract
                and other.manifest.schedule.stage == runtime.manifest.schedule.stage
            ):
                yield other.id, edge.at


def _shortest_cycle(start: str, graph: Mapping[str, Mapping[str, FieldPath]]) -> list[str]:
    """The shortest path from a runtime back to itself, both ends included; empty when there is none."""
    before: dict[str, str] = {}
    todo = deque([start])
    while todo:
        here = todo.popleft()
        for upstream in graph[here]:
            if upstream == start:
                path = [start, here]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return path[::-1]
            if upstream not in before:
                before[upstream] = here
                todo.append(upstream)
    return []
