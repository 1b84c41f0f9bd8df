"""What a commit may do with the runs of a turn. Spec: plugin-model §20."""

from __future__ import annotations

import pytest

from kernel.commit.overlay import DELETED, own_writes
from kernel.commit.plan import Rejected, StagedRun, check_job, check_story, prepare
from kernel.errors import Code, TurnwrightError
from kernel.wire.turn import RunOutcome

BAD = {"type": "plugin.data", "namespace": "_jobs", "key": "k", "value": 1}
GOOD = {"type": "plugin.data", "namespace": "notes", "key": "k", "value": 1}


def run(name: str, *proposals: dict[str, object], story: bool = False) -> StagedRun:
    return StagedRun(runtime_id=name, package_id=name, story=story, proposals=proposals)


def test_with_a_story_every_other_run_is_optional() -> None:
    prepared = prepare([run("a", GOOD), run("tale", story=True), run("z", GOOD)])
    assert [(c.run.runtime_id, c.optional) for c in prepared.commits] == [
        ("a", True),
        ("tale", False),
        ("z", True),
    ]


def test_a_bad_proposal_drops_its_optional_run_alone() -> None:
    prepared = prepare([run("a", GOOD, BAD), run("tale", story=True)])
    assert [(r.runtime_id, r.code) for r in prepared.refusals] == [("a", Code.COMMIT_RESERVED)]
    assert [c.run.runtime_id for c in prepared.commits] == ["tale"]


def test_without_a_story_a_bad_proposal_rejects_the_turn() -> None:
    with pytest.raises(Rejected) as rejected:
        prepare([run("a", BAD)])
    assert (rejected.value.code, rejected.value.runtime_id) == (Code.COMMIT_RESERVED, "a")


def test_nobody_but_the_story_itself_appends_to_the_conversation() -> None:
    words = {"type": "narrative.append", "segments": [{"kind": "narration", "text": "x"}]}
    prepared = prepare([run("a", words), run("tale", story=True)])
    assert [r.code for r in prepared.refusals] == [Code.COMMIT_PROPOSAL]


@pytest.mark.parametrize(
    ("outcome", "text", "code"),
    [
        (RunOutcome(runtime_id="tale", status="failed", reason=Code.MODEL_AUTH), "", Code.MODEL_AUTH),
        (RunOutcome(runtime_id="tale", status="failed", reason="odd"), "", Code.RUNTIME_FAILED),
        (RunOutcome(runtime_id="tale", status="success"), "  \n", Code.MODEL_EMPTY),
    ],
)
def test_a_failed_or_empty_story_rejects_the_turn(outcome: RunOutcome, text: str, code: Code) -> None:
    with pytest.raises(Rejected) as rejected:
        check_story([outcome], ["tale"], {"tale": text})
    assert rejected.value.code == code


@pytest.mark.parametrize(
    "outcome",
    [
        RunOutcome(runtime_id="tale", status="skipped", reason="input-missing"),
        RunOutcome(runtime_id="other", status="failed", reason=Code.RUNTIME_FAILED),
    ],
)
def test_a_skipped_story_and_a_failed_other_reject_nothing(outcome: RunOutcome) -> None:
    check_story([outcome], ["tale"], {})


def test_the_newest_own_write_of_a_record_counts() -> None:
    batch = {"type": "plugin.data.batch", "items": [{"namespace": "n", "key": "b", "value": 2}]}
    gone = {"type": "plugin.data.delete", "namespace": "notes", "key": "k"}
    event = {"type": "event.emit", "topic": "t"}
    assert own_writes([GOOD, batch, event]) == {("notes", "k"): 1, ("n", "b"): 2}
    assert own_writes([GOOD, gone]) == {("notes", "k"): DELETED}


def test_a_job_may_change_its_own_data_and_nothing_else() -> None:
    check_job(run("j", GOOD, {"type": "plugin.data.delete", "namespace": "notes", "key": "k"}))
    with pytest.raises(TurnwrightError) as refused:
        check_job(run("j", GOOD, {"type": "event.emit", "topic": "a.b"}))
    assert refused.value.code == Code.COMMIT_PROPOSAL
