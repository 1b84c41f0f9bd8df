"""Cycles inside one stage: who is in one, who waits behind one. Spec: plugin-model §5; DECISIONS 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernel.schedule.nodes import Link
from kernel.schedule.order import cycle_path, cycles, topological
from kernel.schedule.reasons import Diagnostic, Finding

Links = Mapping[str, tuple[Link, ...]]


def successors(stage: Sequence[str], links: Links) -> dict[str, list[str]]:
    """{upstream: [downstream, …]} of the links inside one stage."""
    inside = set(stage)
    following: dict[str, dict[str, None]] = {}
    for node in stage:
        for link in links[node]:
            for upstream in link.runtimes:
                if upstream in inside:
                    following.setdefault(upstream, {})[node] = None
    return {upstream: list(nodes) for upstream, nodes in following.items()}


def drop_alternatives(
    stage: Sequence[str], links: Links
) -> tuple[dict[str, tuple[Link, ...]], list[Diagnostic]]:
    """Remove false cycles: a provider of this stage that an earlier stage's provider makes unnecessary.

    Spec: plugin-model §5. Only `needs` with one provider; `after`, `all` and inputs keep their edges.

    Returns:
        The changed links by node, and a diagnostic for each.
    """
    changed: dict[str, tuple[Link, ...]] = {}
    found: list[Diagnostic] = []
    inside = set(stage)
    for members in cycles(stage, successors(stage, links)):
        for node in members:
            kept = tuple(_without_alternatives(link, members, inside) for link in links[node])
            if kept != links[node]:
                changed[node] = kept
                message = (
                    f"{node}: an earlier stage provides what it needs, so it does not wait for the cycle"
                )
                found.append(Diagnostic(Finding.ALTERNATIVE_DROPPED, (node,), message))
    return changed, found


def blocked(stage: Sequence[str], links: Links) -> tuple[dict[str, str], list[Diagnostic]]:
    """Every node in a cycle of the stage, or waiting behind one, with the sentence that says so."""
    following = successors(stage, links)
    _, stuck = topological(stage, following)
    messages: dict[str, str] = {}
    found: list[Diagnostic] = []
    paths: dict[str, str] = {}
    for members in cycles(stuck, following):
        path = " → ".join(cycle_path(members, following))
        found.append(Diagnostic(Finding.CYCLE, members, f"dependency cycle, each waits for the next: {path}"))
        paths.update(dict.fromkeys(members, path))
    messages.update((node, f"dependency cycle: {path}") for node, path in paths.items())
    stack = sorted(paths, reverse=True)
    while stack:
        node = stack.pop()
        for behind in following.get(node, ()):
            if behind not in messages:
                paths[behind] = paths[node]
                messages[behind] = f"waits behind the dependency cycle: {paths[node]}"
                stack.append(behind)
    return messages, found


def _without_alternatives(link: Link, members: Sequence[str], inside: set[str]) -> Link:
    earlier = [runtime for runtime in link.runtimes if runtime not in inside]
    if link.kind != "needs" or link.every or not earlier:
        return link
    return replace(link, runtimes=tuple(r for r in link.runtimes if r not in members))
