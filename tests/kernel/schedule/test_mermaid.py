"""Pictures of a plan."""

from __future__ import annotations

from kernel.schedule.mermaid import mermaid, tree
from tests.kernel.schedule.plans import AGENT, graph, play, runtime, taking

PLAN = graph(
    runtime("p/roll", "pre-turn", output="roll@1"),
    runtime('p/"s"', "narrative", agent=AGENT, inputs={"roll": taking("roll@1")}, after=["p/roll"]),
    runtime("q/a", needs=["nobody@1"], writes=["state:*"]),
    runtime("q/b", after=['p/"s"'], writes=["state:*"]),
)


def test_a_flowchart_shows_stages_gates_orders_and_hazards() -> None:
    assert mermaid(PLAN) == (
        "flowchart LR\n"
        '  subgraph pre_turn["pre-turn"]\n'
        '    n0["p/roll"]\n'
        "  end\n"
        '  subgraph narrative["narrative"]\n'
        '    n1(["p/#quot;s#quot;"])\n'
        "  end\n"
        '  subgraph post_turn["post-turn"]\n'
        '    n2["q/a"]\n'
        '    n3["q/b"]\n'
        "  end\n"
        "  n1 -.-> n3\n"
        "  n0 --> n1\n"
        "  n2 -. hazard .-> n3\n"
    )


def test_states_colour_it() -> None:
    states = {state.runtime_id: state for state in play(PLAN)[0].nodes}
    picture = mermaid(PLAN, states)
    assert "  classDef success fill:#d7f5dd,stroke:#2e7d32\n  class n0,n1,n3 success\n" in picture
    assert "  class n2 skipped\n" in picture


def test_a_tree_says_what_each_node_waits_for() -> None:
    states = {state.runtime_id: state for state in play(PLAN)[0].nodes}
    assert tree(PLAN, states) == (
        "pre-turn\n"
        "  p/roll (function): success\n"
        "narrative\n"
        '  p/"s" (agent): success\n'
        "    after p/roll\n"
        "    input roll (roll@1) ← p/roll\n"
        "post-turn\n"
        "  q/a (function): skipped [upstream-not-success] needs nobody@1: nothing that is active in this "
        "turn provides it\n"
        "    needs nobody@1 ← nobody in this turn\n"
        "  q/b (function): success\n"
        '    after p/"s"\n'
        "    hazard q/a\n"
        "! q/b runs after q/a: both touch state:* and nothing orders them (order them, or declare "
        "parallelSafe on both)\n"
    )


def test_a_cycle_and_a_manual_run_have_pictures_too() -> None:
    circle = graph(runtime("a", after=["b"]), runtime("b", after=["a"]))
    assert "    dependency cycle: a → b → a\n" in tree(circle)
    assert tree(graph(runtime("m", None), manual="m")) == "manual\n  m (function)\n"
    assert tree(graph()) == ""
    assert mermaid(graph()) == "flowchart LR\n"
