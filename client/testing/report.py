"""What came of the cases, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from client.testing.play import Report


def line(report: Report) -> str:
    """A case in one line."""
    mark = "✓" if report.passed else "✗"
    return f"{mark} {report.name}  ({report.runtime_id}, {report.seconds:.1f} s)"


def pretty(report: Report) -> Iterator[str]:
    """A case with everything that it left."""
    error = f": {report.commit_error}" if report.commit_error else ""
    yield f"    commit: {report.commit_status}{error}"
    for run in report.runtime_results:
        account = ": ".join(filter(None, (run.get("reason", ""), run.get("message", ""))))
        yield f"    run {run['runtimeId']}: {run['status']}" + (f", {account}" if account else "")
    for namespace, records in report.plugin_data.items():
        for key, value in records.items():
            yield f"    data {namespace} {key}: {json.dumps(value, ensure_ascii=False)[:200]}"
    for topic in report.events:
        yield f"    event {topic}"
    for job in report.jobs:
        yield f"    job {job['runtimeId']}: {job['status']}"


def prompts(report: Report) -> Iterator[str]:
    """Every request to the model for the runtime under test, and what it answered."""
    for number, call in enumerate(report.prompts, 1):
        yield f"    model call {number}"
        for message in call["request"]["messages"]:
            said = message.get("content") or json.dumps(message.get("tool_calls"))
            yield from _block(message["role"], said)
        yield from _block("reply", json.dumps(call["reply"], ensure_ascii=False))


def document(reports: Sequence[Report]) -> dict[str, Any]:
    """All cases as JSON, in the words of the case file."""
    return {"ok": all(report.passed for report in reports), "cases": [_case(report) for report in reports]}


def _case(report: Report) -> dict[str, Any]:
    return {"passed": report.passed, **{_camel(name): value for name, value in asdict(report).items()}}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def _block(label: str, text: str) -> Iterator[str]:
    yield f"      {label}:"
    yield from (f"        {line}" for line in text.splitlines())
