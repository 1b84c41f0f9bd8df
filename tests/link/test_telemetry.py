"""One trace from an action to the wire call it led to, across processes, and no span twice."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload

from link import telemetry
from link.settings import Settings
from link.trace_context import readable
from tests.support.temporal import link_settings

ROOT = Path(__file__).parents[2]


async def traced(role: str, settings: Settings) -> asyncio.subprocess.Process:
    """A process of its own: OpenTelemetry knows one provider per process, and tests here have none."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.link.traced",
        role,
        cwd=ROOT,
        env={**os.environ, **settings.to_env()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def spans(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def ancestors(span: dict[str, Any], by_id: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    names = []
    while span["parent_id"]:
        span = by_id[span["context"]["trace_id"], span["parent_id"]]
        names.append(span["name"])
    return names


@pytest.mark.slow
async def test_one_trace_per_action_across_processes_and_replays(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    settings = link_settings(tmp_path, TURNWRIGHT_TRACE_FILE=str(file))
    worker = await traced("worker", settings)
    assert worker.stdout
    assert await worker.stdout.readline() == b"ready\n"
    actor = await traced("act", settings)
    output, _ = await asyncio.wait_for(actor.communicate(), 60)
    assert actor.returncode == 0, output
    await worker.communicate(b"")
    assert worker.returncode == 0

    written = spans(file)
    by_id = {(span["context"]["trace_id"], span["context"]["span_id"]): span for span in written}
    roots = {
        span["name"]: span["context"]["trace_id"] for span in written if span["name"].startswith("action ")
    }
    assert len(set(roots.values())) == 2
    for trace in roots.values():
        names = Counter(span["name"] for span in written if span["context"]["trace_id"] == trace)
        assert names["RunWorkflow:Turn"] == 1
        assert names["StartChildWorkflow:Turn"] == 1
        assert names["RunActivity:call_model"] == 2
        assert names["model.call"] == 2
    for span in written:
        if span["name"] == "model.call":
            names_above = ancestors(span, by_id)
            assert names_above[-1].startswith("action ")
            assert "RunWorkflow:Turn" in names_above
    assert len(by_id) == len(written), "no span is written twice"


def test_telemetry_that_is_off_adds_nothing(tmp_path: Path) -> None:
    from link.settings import load_settings

    assert telemetry.tracing(load_settings({}, cwd=tmp_path)) == telemetry.Tracing()
    with telemetry.tracer().start_as_current_span("nothing") as span:
        assert not span.is_recording()
    telemetry.flush()


HEADERS = {
    "object of strings": (b"json/plain", b'{"traceparent": "00-x"}', True),
    "number": (b"json/plain", b"5", False),
    "object of numbers": (b"json/plain", b'{"traceparent": 5}', False),
    "no JSON": (b"json/plain", b"{", False),
    "not UTF-8": (b"json/plain", b"\xff", False),
    "deep": (b"json/plain", b"[" * 100_000, False),
    "another encoding": (b"binary/encrypted", b"{}", False),
}


@pytest.mark.parametrize("case", HEADERS)
def test_unreadable_trace_header_is_dropped(case: str) -> None:
    encoding, data, kept = HEADERS[case]
    headers = {"_tracer-data": Payload(metadata={"encoding": encoding}, data=data), "other": Payload()}
    assert set(readable(headers)) == ({"_tracer-data", "other"} if kept else {"other"})
