"""Turns of a session as lines of text: pure functions from what was seen to what is printed."""

from __future__ import annotations

from collections.abc import Sequence

from client.history import ToolUse
from kernel.wire.approvals import Approval
from kernel.wire.nodes import NodeState
from kernel.wire.turn import CommittedCounts, GraphView, TurnResult
from kernel.wire.usage import UsageTotals

MARKS = {
    "waiting": "·",
    "running": "▸",
    "success": "✓",
    "skipped": "○",
    "suspended": "‖",
    "failed": "✗",
    "deferred": "»",
}
_ARGUMENTS = 120


def tree(view: GraphView) -> list[str]:
    """Stages, and under each its nodes with states, times and costs."""
    lines: list[str] = []
    for stage, nodes in by_stage(view):
        lines.append(stage)
        lines += [f"  {node_line(node)}" for node in nodes]
    return [*lines, *(f"! {diagnostic}" for diagnostic in view.diagnostics)]


def by_stage(view: GraphView) -> list[tuple[str, list[NodeState]]]:
    """Nodes by stage, in the order of the graph."""
    stages: dict[str, list[NodeState]] = {}
    for node in view.nodes:
        stages.setdefault(node.stage or "manual", []).append(node)
    return list(stages.items())


def changes(before: GraphView | None, after: GraphView) -> list[str]:
    """What is new between two looks at a turn: stages that began, nodes in another state."""
    known = {node.runtime_id: node.status for node in before.nodes} if before else {}
    begun = {node.stage for node in before.nodes if node.status != "waiting"} if before else set()
    lines: list[str] = []
    for stage, nodes in by_stage(after):
        moved = [n for n in nodes if n.status not in ("waiting", known.get(n.runtime_id, "waiting"))]
        if moved and nodes[0].stage not in begun:
            lines.append(stage)
        lines += [f"  {node_line(node)}" for node in moved]
    return lines


def node_line(node: NodeState) -> str:
    """One node: mark, id, kind, state, time, reason, cost."""
    parts = [f"{MARKS[node.status]} {node.runtime_id:<20} {node.kind:<8} {node.status:<9}"]
    if node.started_at is not None and node.ended_at is not None:
        parts.append(seconds(node.ended_at - node.started_at))
    if node.reason:
        parts.append(f"[{node.reason}] {node.message}".rstrip())
    if node.usage.calls:
        parts.append(usage(node.usage))
    return "  ".join(parts).rstrip()


def seconds(value: float) -> str:
    """A duration: `0.12 s`."""
    return f"{max(0.0, value):.2f} s"


def usage(totals: UsageTotals) -> str:
    """Calls, tokens and cost in one line."""
    text = f"{count(totals.calls, 'model call')}, {totals.input_tokens} + {totals.output_tokens} tokens"
    text += f", {totals.cost_usd:.6f} USD"
    if totals.unpriced:
        text += f" ({count(totals.unpriced, 'call')} without a price)"
    if totals.unknown:
        text += f" ({count(totals.unknown, 'call')} of unknown outcome)"
    return text


def committed(counts: CommittedCounts) -> str:
    """What a commit changed."""
    kinds = {
        "message": counts.messages,
        "data record": counts.data,
        "state value": counts.state,
        "event": counts.events,
        "export": counts.exports,
    }
    said = [count(number, name) for name, number in kinds.items() if number]
    return ", ".join(said) or "nothing"


def count(number: int, name: str) -> str:
    """`1 event`, `2 events`."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def result_lines(result: TurnResult) -> list[str]:
    """How a turn ended."""
    why = f" [{result.reason}] {result.message}".rstrip() if result.reason or result.message else ""
    lines = [f"{result.status}{why}"]
    if result.status == "committed":
        lines.append(f"committed: {committed(result.committed)}")
    lines += [
        f"{run.status}: {run.runtime_id} [{run.reason}] {run.message}".rstrip()
        for run in result.runs
        if run.status == "failed"
    ]
    lines.append(f"usage: {usage(result.usage)}")
    lines += [f"job: {job.runtime_id} ({job.job_id})" for job in result.jobs]
    return lines


def tool_line(use: ToolUse) -> str:
    """One tool call, and how it ended when it has."""
    state = {None: "▸", True: "✓", False: "✗"}[use.ok]
    text = f"{state} {use.runtime_id} calls {use.tool} {shortened(use.arguments)}"
    if use.ok is False:
        return f"{text}  [{use.code}] {use.message}".rstrip()
    return text


def new_tools(before: Sequence[ToolUse], after: Sequence[ToolUse]) -> list[ToolUse]:
    """The calls that began or ended between two looks."""
    known = set(before)
    return [use for use in after if use not in known]


def approval_line(approval: Approval) -> str:
    """A question to a person."""
    return (
        f"? approval {approval.ref}: {approval.runtime_id} asks to call {approval.tool} {approval.arguments}"
    )


def shortened(text: str, most: int = _ARGUMENTS) -> str:
    """Text on one line, cut to a length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
