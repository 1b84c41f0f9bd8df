"""Orders of a directed graph, the same for every order of its input: ties go by code point.

Edges are given as successors: `{upstream: [downstream, …]}`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Mapping

Successors = Mapping[str, Collection[str]]


def topological(nodes: Iterable[str], successors: Successors) -> tuple[list[str], list[str]]:
    """Sort topologically, the smallest ready node first.

    Returns:
        The order, and the nodes that have none (in a cycle, or behind one), by code point.
    """
    waiting = dict.fromkeys(sorted(nodes), 0)
    for node in waiting:
        for successor in successors.get(node, ()):
            if successor in waiting:
                waiting[successor] += 1
    ready = [node for node, count in waiting.items() if not count]
    order: list[str] = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        del waiting[node]
        for successor in successors.get(node, ()):
            if successor in waiting:
                waiting[successor] -= 1
                if not waiting[successor]:
                    heapq.heappush(ready, successor)
    return order, list(waiting)


def cycles(nodes: Iterable[str], successors: Successors) -> list[tuple[str, ...]]:
    """The sets of nodes that reach each other (strongly connected components with a cycle), sorted."""
    found: list[tuple[str, ...]] = []
    pending = sorted(nodes)
    inside = set(pending)
    predecessors = _reverse(pending, successors)
    seen: set[str] = set()
    # Kosaraju's two passes: the second, over reversed edges, collects one component per root.
    for root in reversed(_finishing_order(pending, successors, inside)):
        if root in seen:
            continue
        members = _reach(root, predecessors, seen)
        if len(members) > 1 or root in successors.get(root, ()):
            found.append(tuple(sorted(members)))
    return sorted(found)


def cycle_path(members: Collection[str], successors: Successors) -> tuple[str, ...]:
    """A shortest cycle through the smallest member, against the edges: each waits for the next.

    `members` is one component of `cycles`, so that the path exists; its first node is also its last.
    """
    start = min(members)
    predecessors = _reverse(sorted(members), successors)
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for upstream in sorted(predecessors[node]):
            if upstream == start:
                return (start, *_walk_back(node, start, came_from), start)
            if upstream not in came_from:
                came_from[upstream] = node
                queue.append(upstream)
    raise ValueError(f"{start} is in no cycle")


def _walk_back(node: str, start: str, came_from: Mapping[str, str]) -> list[str]:
    path: list[str] = []
    while node != start:
        path.append(node)
        node = came_from[node]
    return path[::-1]


def _reverse(nodes: Collection[str], successors: Successors) -> dict[str, list[str]]:
    predecessors: dict[str, list[str]] = {node: [] for node in nodes}
    for node in nodes:
        for successor in sorted(successors.get(node, ())):
            if successor in predecessors:
                predecessors[successor].append(node)
    return predecessors


def _finishing_order(nodes: Collection[str], successors: Successors, inside: set[str]) -> list[str]:
    """Depth-first finishing order, without recursion: a chain may be longer than Python's stack."""
    order: list[str] = []
    seen: set[str] = set()
    for root in nodes:
        stack = [(root, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend((next_, False) for next_ in sorted(successors.get(node, ())) if next_ in inside)
    return order


def _reach(root: str, edges: Successors, seen: set[str]) -> list[str]:
    """Everything reachable from `root` that was not seen before, marked as seen."""
    members: list[str] = []
    stack = [root]
    seen.add(root)
    while stack:
        node = stack.pop()
        members.append(node)
        for other in edges[node]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return members
