"""What a commit does with the runs of a turn: which may stage, which may be dropped, what rejects all.

Spec: plugin-model §20. The order of runs is the caller's (topological, DECISIONS 3); story-first is about
what a refusal rolls back: with a successful story every other run stands in a savepoint of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.commit.proposals import NarrativeAppend, Proposal, parse_proposal
from kernel.errors import Code, TurnwrightError
from kernel.wire.base import Json
from kernel.wire.turn import RunOutcome


@dataclass(frozen=True)
class StagedRun:
    """One successful run, as the store holds it.

    Attributes:
        proposals: staged proposals as JSON, in staging order.
        export: name under which the output is recorded, if any.
    """

    runtime_id: str
    package_id: str
    story: bool = False
    proposals: Sequence[Mapping[str, Any]] = ()
    output: Json = None
    export: str | None = None


@dataclass(frozen=True)
class RunCommit:
    """One run that may commit. `optional`: a refusal drops this run alone."""

    run: StagedRun
    proposals: tuple[Proposal, ...]
    optional: bool


@dataclass(frozen=True)
class Refusal:
    """A run that was dropped, and why."""

    runtime_id: str
    code: Code
    message: str


@dataclass(frozen=True)
class Prepared:
    """The result of preparing outside the transaction."""

    commits: tuple[RunCommit, ...]
    refusals: tuple[Refusal, ...]


class Rejected(Exception):
    """The whole turn must roll back.

    Attributes:
        code: why.
        runtime_id: the run that caused it, if one did.
    """

    def __init__(self, code: Code, message: str, runtime_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.runtime_id = runtime_id


def check_story(outcomes: Sequence[RunOutcome], stories: Sequence[str], texts: Mapping[str, str]) -> None:
    """Reject a turn whose story failed or is empty; a skipped story rejects nothing. Spec: plugin-model §10.

    Raises:
        Rejected: with the failure's own code, or `model.empty-reply`.
    """
    for outcome in outcomes:
        if outcome.runtime_id not in stories:
            continue
        if outcome.status == "failed":
            code = Code(outcome.reason) if outcome.reason in set(Code) else Code.RUNTIME_FAILED
            raise Rejected(code, outcome.message or "the story failed", outcome.runtime_id)
        if outcome.status == "success" and not texts.get(outcome.runtime_id, "").strip():
            raise Rejected(Code.MODEL_EMPTY, "the story has no text", outcome.runtime_id)


def prepare(runs: Sequence[StagedRun]) -> Prepared:
    """Check the shape of every proposal before any write.

    Raises:
        Rejected: a run that must not be dropped has a proposal that cannot be committed.
    """
    isolated = any(run.story for run in runs)
    commits: list[RunCommit] = []
    refusals: list[Refusal] = []
    for run in runs:
        optional = isolated and not run.story
        try:
            commits.append(RunCommit(run, _proposals(run), optional))
        except TurnwrightError as error:
            refusals.append(refuse(run, optional, error.code, error.account))
    return Prepared(tuple(commits), tuple(refusals))


def check_job(run: StagedRun) -> None:
    """Refuse a detached run that changes more than its package's own data. Spec: plugin-model §18.

    Raises:
        TurnwrightError: `commit.proposal-invalid`.
    """
    for proposal in run.proposals:
        if not str(proposal["type"]).startswith("plugin.data"):
            message = f"a job cannot commit {proposal['type']}"
            accepted = "changes of its package's own data"
            raise TurnwrightError(Code.COMMIT_PROPOSAL, message, where=run.runtime_id, accepted=accepted)


def refuse(run: StagedRun, optional: bool, code: Code, message: str) -> Refusal:
    """A dropped run, or the end of the turn when it must not be dropped."""
    if not optional:
        raise Rejected(code, message, run.runtime_id)
    return Refusal(run.runtime_id, code, message)


def _proposals(run: StagedRun) -> tuple[Proposal, ...]:
    proposals = [parse_proposal(dict(proposal), owner_code=True) for proposal in run.proposals]
    for proposal in proposals:
        if isinstance(proposal, NarrativeAppend):
            message = "only the story's own text is appended to the conversation"
            raise TurnwrightError(Code.COMMIT_PROPOSAL, message, where=run.runtime_id)
    return tuple(proposals)
