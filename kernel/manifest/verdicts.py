"""What a case expected, held against what its run did. Spec: plugin-model §31."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.manifest.cases import Case, ExpectedRecord


@dataclass(frozen=True)
class Ended:
    """How one runtime ended; `reason` is a code or empty."""

    status: str
    reason: str = ""
    message: str = ""

    @property
    def account(self) -> str:
        """Reason and message in one line."""
        return ": ".join(part for part in (self.reason, self.message) if part)


@dataclass(frozen=True)
class Observed:
    """What a run did.

    Attributes:
        commit_status: `committed`, `rejected`, `stopped` or `failed`.
        commit_error: why it did not commit.
        runs: by runtime id; detached ones with how their job ended.
        events: topics that were committed.
        logs: what was logged meanwhile.
        data: records of the package under test: namespace → key → value.
    """

    commit_status: str
    commit_error: str = ""
    runs: Mapping[str, Ended] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    logs: str = ""
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def verdict(case: Case, observed: Observed, runtime_id: str) -> tuple[str, ...]:
    """Every expectation that was not met, and every failure that nobody expected; empty when all is well.

    Args:
        runtime_id: the runtime under test, which has to have run.
    """
    found = tuple(_unmet(case, observed))
    if found or runtime_id in observed.runs:
        return found
    return (f"{runtime_id}: it did not run",)


def _unmet(case: Case, observed: Observed) -> Iterator[str]:
    expect = case.expect
    failing = {run.runtime_id for run in expect.runtime_results if run.status == "failed"}
    for expected in expect.runtime_results:
        found = observed.runs.get(expected.runtime_id)
        if found is None:
            yield f"{expected.runtime_id}: expected {expected.status}, and it did not run"
        elif found.status != expected.status:
            yield f"{expected.runtime_id}: expected {expected.status}, and it was {_told(found)}"
        elif expected.error_includes is not None and expected.error_includes not in found.account:
            yield f"{expected.runtime_id}: expected {expected.error_includes!r} in {found.account!r}"
    for name, run in observed.runs.items():
        if run.status == "failed" and name not in failing:
            yield f"{name}: {_told(run)}"
    if observed.commit_status != "committed" and not failing:
        yield f"the turn was {observed.commit_status}: {observed.commit_error}"
    for event in expect.events:
        if event.topic not in observed.events:
            yield f"event {event.topic}: expected, and not committed"
    for line in expect.logs:
        if line not in observed.logs:
            yield f"log: expected {line!r}, and no line has it"
    for record in expect.plugin_data:
        yield from _record(record, observed.data.get(record.namespace, {}))


def _record(expected: ExpectedRecord, records: Mapping[str, Any]) -> Iterator[str]:
    place = f"pluginData {expected.namespace}" + (f" {expected.key}" if expected.key is not None else "")
    found = [value for key, value in records.items() if expected.key in (None, key)]
    if expected.status == "absent":
        if found:
            yield f"{place}: expected to be absent, and it is there"
    elif not found:
        yield f"{place}: expected to be present, and it is not there"
    elif expected.field is not None and not any(_has(value, expected.field) for value in found):
        yield f"{place}: expected the field {expected.field}, and it has none"


def _has(value: Any, place: str) -> bool:
    """Whether a value has a field, or a place that a JSON Pointer names."""
    steps = [place] if not place.startswith("/") else place[1:].split("/")
    for step in (step.replace("~1", "/").replace("~0", "~") for step in steps):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False
    return True


def _told(run: Ended) -> str:
    return f"{run.status}: {run.account}" if run.account else run.status
