"""How turns are printed: pure functions."""

from __future__ import annotations

import pytest

from client import show
from client.history import ToolUse
from client.prose import Wrapper
from kernel.wire.nodes import NodeState
from kernel.wire.turn import CommittedCounts, GraphView, RunOutcome, TurnResult
from kernel.wire.usage import UsageTotals

DICE = NodeState(runtime_id="dice", stage="pre-turn")
STORY = NodeState(runtime_id="chronicle/story", stage="narrative", kind="agent")


def view(*nodes: NodeState, **more: object) -> GraphView:
    fields = {"turn_id": "t1", "session_id": "s", "status": "running", "logical_turn": 1, "nodes": nodes}
    return GraphView.model_validate({**fields, **more})


def at(node: NodeState, status: str, **more: object) -> NodeState:
    return node.model_copy(update={"status": status, **more})


def test_tree_lists_stages_with_states_times_and_costs() -> None:
    usage = UsageTotals(calls=2, input_tokens=10, output_tokens=5, cost_usd=0.5)
    seen = view(
        at(DICE, "success", started_at=1.0, ended_at=1.25),
        at(STORY, "failed", reason="model.auth", message="no key", usage=usage),
        diagnostics=("nobody answers",),
    )
    assert show.tree(seen) == [
        "pre-turn",
        "  ✓ dice                 function success    0.25 s",
        "narrative",
        "  ✗ chronicle/story      agent    failed     [model.auth] no key  "
        "2 model calls, 10 + 5 tokens, 0.500000 USD",
        "! nobody answers",
    ]


def test_a_manual_runtime_stands_under_manual() -> None:
    assert show.tree(view(NodeState(runtime_id="q")))[0] == "manual"


def test_changes_are_told_once_with_their_stage_before_the_first() -> None:
    waiting = view(DICE, STORY)
    running = view(at(DICE, "running"), STORY)
    done = view(at(DICE, "success"), at(STORY, "running"))
    assert show.changes(None, waiting) == []
    assert [line.split()[0] for line in show.changes(waiting, running)] == ["pre-turn", "▸"]
    assert [line.split()[0] for line in show.changes(running, done)] == ["✓", "narrative", "▸"]
    assert show.changes(done, done) == []


def test_what_was_missed_between_two_looks_is_told() -> None:
    first_look = view(at(DICE, "success"), at(STORY, "running"))
    assert [line.split()[0] for line in show.changes(None, first_look)] == ["pre-turn", "✓", "narrative", "▸"]


@pytest.mark.parametrize(
    ("totals", "text"),
    [
        (UsageTotals(), "0 model calls, 0 + 0 tokens, 0.000000 USD"),
        (
            UsageTotals(calls=1, unpriced=1, unknown=2),
            "1 model call, 0 + 0 tokens, 0.000000 USD (1 call without a price) (2 calls of unknown outcome)",
        ),
    ],
)
def test_usage_tells_what_is_not_known(totals: UsageTotals, text: str) -> None:
    assert show.usage(totals) == text


def test_committed_counts() -> None:
    assert show.committed(CommittedCounts()) == "nothing"
    assert show.committed(CommittedCounts(messages=1, events=2)) == "1 message, 2 events"


def test_result_names_failed_runs() -> None:
    run = RunOutcome(runtime_id="r", status="failed", reason="runtime.timeout", message="late")
    result = TurnResult(session_id="s", turn_id="t", status="rejected", reason="turn.rejected", runs=(run,))
    assert show.result_lines(result)[:2] == ["rejected [turn.rejected]", "failed: r [runtime.timeout] late"]


def test_tool_calls_are_told_when_they_begin_and_when_they_end() -> None:
    begun = ToolUse("a", 1, 0, "look", '{"at":  "sea"}')
    ended = ToolUse("a", 1, 0, "look", '{"at":  "sea"}', ok=False, code="tool.denied", message="no")
    assert show.new_tools([], [begun]) == [begun]
    assert show.new_tools([begun], [begun]) == []
    assert show.new_tools([begun], [ended]) == [ended]
    assert show.tool_line(begun) == '▸ a calls look {"at": "sea"}'
    assert show.tool_line(ended) == '✗ a calls look {"at": "sea"}  [tool.denied] no'


PROSE = "The lamp is lit at last.\n\nNobody answers, and the sea goes on."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_prose_wraps_the_same_however_it_arrives(size: int) -> None:
    wrapper = Wrapper(24, "| ")
    out = "".join(wrapper.feed(PROSE[start : start + size]) for start in range(0, len(PROSE), size))
    assert out + wrapper.close() == (
        "| The lamp is lit at\n| last.\n|\n| Nobody answers, and\n| the sea goes on.\n"
    )


def test_a_word_is_written_as_soon_as_it_ends() -> None:
    wrapper = Wrapper(80)
    assert wrapper.feed("The la") == "The"
    assert wrapper.feed("mp ") == " lamp"
    assert wrapper.close() == "\n"
    assert wrapper.close() == ""
