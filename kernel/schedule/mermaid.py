"""A plan for people: as a Mermaid flowchart, and as a plain text tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernel.schedule.nodes import Graph, Link, Node
from kernel.wire.nodes import NodeState

States = Mapping[str, NodeState]

_CLASSES = {
    "running": "fill:#fff3c4,stroke:#b58900",
    "success": "fill:#d7f5dd,stroke:#2e7d32",
    "skipped": "fill:#eeeeee,stroke:#888888",
    "suspended": "fill:#dbe9ff,stroke:#1565c0",
    "failed": "fill:#ffd9d6,stroke:#c62828",
    "deferred": "fill:#efe0ff,stroke:#6a1b9a",
}


def mermaid(graph: Graph, states: States | None = None) -> str:
    """A flowchart: solid arrows gate, dotted ones only order, `hazard` ones serialise.

    Args:
        graph: a planned turn.
        states: node states by runtime id, to colour by.
    """
    names = {runtime_id: f"n{place}" for place, runtime_id in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for batch in graph.stages:
        title = batch.stage or "manual"
        lines.append(f'  subgraph {title.replace("-", "_")}["{title}"]')
        lines += [f"    {names[node]}{_box(graph.nodes[node])}" for node in batch.runtime_ids]
        lines.append("  end")
    lines += [f"  {names[up]} {arrow} {names[down]}" for up, down, arrow in _arrows(graph)]
    lines += list(_colours(names, states or {}))
    return "\n".join(lines) + "\n"


def tree(graph: Graph, states: States | None = None) -> str:
    """Stages, nodes and what each waits for, one line each."""
    lines: list[str] = []
    for batch in graph.stages:
        lines.append(batch.stage or "manual")
        for runtime_id in batch.runtime_ids:
            node = graph.nodes[runtime_id]
            lines.append(f"  {runtime_id} ({node.kind}){_status((states or {}).get(runtime_id))}")
            lines += [f"    {link.label}{_answers(link)}" for link in node.links]
            lines += [f"    hazard {first}" for first in node.hazards]
            lines += [f"    {node.blocked}"] if node.blocked else []
    lines += [f"! {diagnostic}" for diagnostic in graph.diagnostics]
    return "\n".join(lines) + "\n" if lines else ""


def _arrows(graph: Graph) -> Iterator[tuple[str, str, str]]:
    for up, down in graph.edges:
        hard = any(link.hard and up in link.runtimes for link in graph.nodes[down].links)
        yield up, down, "-->" if hard else "-.->"
    for first, second in graph.hazards:
        yield first, second, "-. hazard .->"


def _box(node: Node) -> str:
    text = node.runtime_id.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;")
    return f'(["{text}"])' if node.kind == "agent" else f'["{text}"]'


def _colours(names: Mapping[str, str], states: States) -> Iterator[str]:
    for status, style in _CLASSES.items():
        members = [name for node, name in names.items() if node in states and states[node].status == status]
        if members:
            yield f"  classDef {status} {style}"
            yield f"  class {','.join(members)} {status}"


def _status(state: NodeState | None) -> str:
    if state is None:
        return ""
    why = f" [{state.reason}] {state.message}".rstrip() if state.reason else ""
    return f": {state.status}{why}"


def _answers(link: Link) -> str:
    """Who answers a contract; a runtime reference names its answer itself."""
    if link.runtimes == (link.target,):
        return ""
    return f" ← {', '.join(link.runtimes)}" if link.runtimes else " ← nobody in this turn"
