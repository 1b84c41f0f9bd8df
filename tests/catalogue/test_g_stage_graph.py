"""Catalogue G: the stage graph. G2 is a load error and stands with the manifests."""

from __future__ import annotations

import pytest

from kernel.schedule.reasons import Finding
from kernel.wire.turn import RunStatus
from tests.kernel.schedule.plans import graph, on, outcome, play, runtime, statuses, taking


def provider(name: str, gives: str, *wants: str):
    return runtime(f"{name}/r", output=f"{gives}@1", needs=[f"{want}@1" for want in wants])


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ([provider("p", "a", "b"), provider("q", "b", "a")], "p/r → q/r → p/r"),
        ([provider("p", "a", "a")], "p/r → p/r"),
        (
            [provider("p", "a", "b"), provider("q", "b", "c"), provider("r", "c", "a")],
            "p/r → q/r → r/r → p/r",
        ),
    ],
    ids=["two", "self-loop", "three"],
)
def test_g1_a_cycle_across_packages_is_skipped_with_its_path_and_nothing_hangs(
    members: list, path: str
) -> None:
    plan = graph(*members, runtime("z/free"), runtime("z/behind", after=["a@1"]))
    progress, _ = play(plan)
    for member in (*(m.runtime_id for m in members), "z/behind"):
        run = outcome(progress, member)
        assert (run.status, run.reason) == ("skipped", "dependency-cycle")
        assert path in run.message
    assert statuses(progress)["z/free"] == "success"
    assert [d.finding for d in plan.diagnostics] == [Finding.CYCLE]
    assert path in str(plan.diagnostics[0])


@pytest.mark.parametrize("kind", ["needs", "input"])
def test_g3_what_hangs_on_a_skipped_parent_is_skipped(kind: str) -> None:
    wants = {"needs": ["p/b"]} if kind == "needs" else {"inputs": {"v": taking("p/b")}}
    progress, waves = play(
        graph(runtime("p/a"), runtime("p/b", needs=["p/a"]), runtime("p/c", **wants)), {"p/a": "failed"}
    )
    assert waves == [["p/a"]]
    assert statuses(progress) == {"p/a": "failed", "p/b": "skipped", "p/c": "skipped"}


@pytest.mark.parametrize("wants", [{"after": ["p/b"]}, {"inputs": {"v": taking("p/b", required=False)}}])
def test_g3_unless_it_opts_in(wants: dict) -> None:
    plan = graph(runtime("p/a"), runtime("p/b", needs=["p/a"]), runtime("p/c", **wants))
    assert statuses(play(plan, {"p/a": "failed"})[0])["p/c"] == "success"


@pytest.mark.parametrize(
    ("join", "left", "right", "end"),
    [
        ("each", "success", "success", "success"),
        ("each", "success", "skipped", "skipped"),
        ("each", "failed", "skipped", "skipped"),
        ("one", "success", "skipped", "success"),
        ("one", "failed", "success", "success"),
        ("one", "skipped", "skipped", "skipped"),
        ("one", "failed", "skipped", "skipped"),
        ("all", "success", "success", "success"),
        ("all", "success", "skipped", "skipped"),
        ("all", "success", "failed", "skipped"),
        ("order", "skipped", "failed", "success"),
        ("order", "suspended", "skipped", "success"),
    ],
)
def test_g4_the_join_of_a_diamond(join: str, left: RunStatus, right: RunStatus, end: str) -> None:
    joins = {
        "each": {"needs": ["p/left", "p/right"]},
        "one": {"needs": ["side@1"]},
        "all": {"needs": [on("side@1", "all")]},
        "order": {"after": ["p/left", "p/right"]},
    }
    plan = graph(
        runtime("p/top"),
        runtime("p/left", needs=["p/top"], output="side@1"),
        runtime("p/right", needs=["p/top"], output="side@1"),
        runtime("q/bottom", **joins[join]),
    )
    assert statuses(play(plan, {"p/left": left, "p/right": right})[0])["q/bottom"] == end


def test_g5_a_node_that_its_guard_skips_has_its_own_status_and_the_rest_runs() -> None:
    plan = graph(runtime("p/a"), runtime("p/after", after=["p/a"]), runtime("p/needs", needs=["p/a"]))
    progress, _ = play(plan, {"p/a": "skipped"})
    assert statuses(progress) == {"p/a": "skipped", "p/after": "success", "p/needs": "skipped"}
    assert outcome(progress, "p/needs").message == "needs p/a: p/a was skipped"


def test_g7_a_failure_in_the_middle_skips_its_branch_and_the_others_finish() -> None:
    plan = graph(
        runtime("p/a"),
        runtime("p/b", needs=["p/a"]),
        runtime("p/c", needs=["p/a"]),
        runtime("p/d", needs=["p/b"]),
        runtime("p/e", needs=["p/d"]),
        runtime("p/later", "audit", needs=["p/c"]),
    )
    progress, _ = play(plan, {"p/d": "failed"})
    assert statuses(progress) == {
        **dict.fromkeys(["p/a", "p/b", "p/c", "p/later"], "success"),
        "p/d": "failed",
        "p/e": "skipped",
    }
    assert [run.runtime_id for run in progress.outcomes()] == ["p/a", "p/b", "p/c", "p/d", "p/e", "p/later"]
