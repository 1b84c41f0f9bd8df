"""What the Temporal UI shows as current details: Markdown, free of history."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from kernel.wire.nodes import NodeState
    from kernel.wire.session import SessionView
    from kernel.wire.turn import GraphView

_MOST_ROWS = 100


def session(view: SessionView) -> str:
    """The session at a glance."""
    running = f"`{view.running.turn_id}`" if view.running else "none"
    lines = [
        f"**{view.status}**, {view.completed_player_turns} turns committed",
        "",
        f"- running turn: {running}, waiting: {len(view.queue)}, jobs: {len(view.jobs)}",
    ]
    lines += [
        f"- approval `{approval.ref}`: {approval.tool} of {approval.runtime_id}"
        for approval in view.approvals
        if approval.status == "open"
    ]
    lines += [f"- notice `{notice.code}`: {notice.message}" for notice in view.notices]
    return "\n".join(lines)


def turn(view: GraphView) -> str:
    """A table of the turn's nodes, with states and costs."""
    head = f"**{view.status}**, logical turn {view.logical_turn}"
    rows = [_row(node) for node in view.nodes[:_MOST_ROWS]]
    more = [f"… and {len(view.nodes) - _MOST_ROWS} more"] if len(view.nodes) > _MOST_ROWS else []
    table = [
        "| stage | runtime | state | reason | calls | tokens | USD |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([head, "", *table, *rows, *more])


def _row(node: NodeState) -> str:
    usage = node.usage
    tokens = usage.input_tokens + usage.output_tokens
    reason = f"{node.reason} {node.message}".strip().replace("|", "\\|")
    return (
        f"| {node.stage or 'manual'} | {node.runtime_id} | {node.status} | {reason} "
        f"| {usage.calls} | {tokens} | {usage.cost_usd:.6f} |"
    )
