"""What grows with runs, jobs and questions is cut before it passes the largest payload.

Statuses and reasons stay, texts go first; what was cut says so. The whole text stands in the store and in
the result of the run itself. What fits is passed on untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from pydantic_core import to_json

from kernel.errors import Code
from kernel.wire.base import Wire
from kernel.wire.nodes import NodeState
from kernel.wire.session import Notice, SessionSnapshot, SessionView
from kernel.wire.turn import GraphView, RunOutcome

W = TypeVar("W", bound=Wire)
T = TypeVar("T")

TEXT_BYTES: Final = 24 * 1024
"""Most JSON bytes of the messages, or of the outlines, of one payload."""

VIEW_BYTES: Final = 240 * 1024
"""Most JSON bytes of a query's answer; the converter accepts 256 KiB (DESIGN §4, rule 1)."""

SNAPSHOT_BYTES: Final = 63 * 1024
"""Most JSON bytes of a snapshot; the name of a task queue comes on top (DESIGN §2: 64 KiB)."""

CUT: Final = "…"
"""Stands for a text that did not fit."""

_CUT_BYTES = len(to_json(CUT))
_NOTE_BYTES = 1024
"""Room for the sentence that tells what was left out."""


def size(value: Any) -> int:
    """Bytes of a value as the converter writes it."""
    return len(
        value.__pydantic_serializer__.to_json(value, exclude_unset=True)
        if isinstance(value, Wire)
        else to_json(value)
    )


def outcomes(runs: Iterable[RunOutcome]) -> tuple[RunOutcome, ...]:
    """How runs ended, in their order; messages past the budget are cut."""
    return cut(tuple(runs), "message")


def graph_view(view: GraphView) -> GraphView:
    """The answer of `graph`, as much of it as fits; a last diagnostic tells how much that is.

    Messages are cut first; then costs and times go, and last the edges and nodes at the end.
    """
    if size(view) <= VIEW_BYTES:
        return view
    told = head(view.diagnostics, TEXT_BYTES)
    view = view.model_copy(update={"nodes": cut(view.nodes, "message"), "diagnostics": told})
    if size(view) > VIEW_BYTES - _NOTE_BYTES:
        view = view.model_copy(update={"nodes": tuple(_bare(node) for node in view.nodes)})
    left = VIEW_BYTES - _NOTE_BYTES - size(view.model_copy(update={"nodes": (), "edges": ()}))
    nodes = head(view.nodes, left)
    edges = head(view.edges, left - sum(size(node) + 1 for node in nodes))
    shown = f"{len(nodes)} of {len(view.nodes)} runtimes, {len(edges)} of {len(view.edges)} edges"
    note = f"too large to show whole: {shown}"
    return view.model_copy(update={"nodes": nodes, "edges": edges, "diagnostics": (*told, note)})


def session_view(view: SessionView) -> SessionView:
    """The answer of `state`, as much of it as fits: outlines of arguments are cut first, then jobs."""
    if size(view) <= VIEW_BYTES:
        return view
    view = view.model_copy(update={"approvals": cut(view.approvals, "arguments")})
    left = VIEW_BYTES - _NOTE_BYTES - size(view.model_copy(update={"jobs": ()}))
    jobs = head(view.jobs, left)
    if len(jobs) == len(view.jobs):
        return view
    note = Notice(code=Code.WIRE_TOO_LARGE, message=f"{len(jobs)} of {len(view.jobs)} jobs are shown")
    return view.model_copy(update={"jobs": jobs, "notices": (*view.notices, note)})


def snapshot(whole: SessionSnapshot) -> SessionSnapshot:
    """A snapshot that fits: forgets closed approvals, notices and old actions, the oldest first.

    All of these stand in the store too: a repeated action meets its receipt there. Queued actions, jobs and
    open approvals stay; the caps of the session keep them small enough.
    """
    excess = size(whole) - SNAPSHOT_BYTES
    if excess <= 0:
        return whole
    closed = [approval for approval in whole.approvals if approval.status != "open"]
    given: dict[str, Any] = {}
    for field, droppable in (("approvals", closed), ("notices", whole.notices), ("recent", whole.recent)):
        dropped = _oldest(droppable, excess)
        excess -= sum(size(item) + 1 for item in dropped)
        given[field] = tuple(item for item in getattr(whole, field) if item not in dropped)
    if excess > 0:
        given["approvals"] = cut(given["approvals"], "arguments", budget=0)
    return whole.model_copy(update=given)


def cut(items: Sequence[W], field: str, *, budget: int = TEXT_BYTES) -> tuple[W, ...]:
    """The items in their order; a text that the texts before it leave no room for is cut.

    Args:
        budget: JSON bytes of all the texts together; the marks of cut ones may pass it.
    """
    left = budget - _CUT_BYTES * sum(1 for item in items if getattr(item, field))
    result: list[W] = []
    for item in items:
        more = len(to_json(getattr(item, field))) - _CUT_BYTES
        if more > max(left, 0):
            result.append(item.model_copy(update={field: CUT}))
        else:
            left -= max(more, 0)
            result.append(item)
    return tuple(result)


def head(items: Sequence[T], budget: int) -> tuple[T, ...]:
    """The first items whose JSON, with a comma each, takes at most `budget` bytes."""
    for count, item in enumerate(items):
        budget -= size(item) + 1
        if budget < 0:
            return tuple(items[:count])
    return tuple(items)


def _oldest(items: Sequence[W], excess: int) -> list[W]:
    """The first items that free at least so many bytes, or all of them."""
    found: list[W] = []
    for item in items:
        if excess <= 0:
            break
        excess -= size(item) + 1
        found.append(item)
    return found


def _bare(node: NodeState) -> NodeState:
    kept = node.model_fields_set - {"usage", "started_at", "ended_at"}
    return NodeState.model_construct(_fields_set=kept, **{name: getattr(node, name) for name in kept})
