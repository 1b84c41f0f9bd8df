"""One trace from a player's action to the wire calls, across the client and two worker processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from activities.models.offline.http_server import HttpRequest, HttpResponse, HttpServer
from kernel.wire.ids import job_workflow
from link.settings import Settings, TelemetrySettings
from tests.running.guide import PACKAGE, guide
from tests.support.model_server import ModelServer, Reply
from tests.support.rig import ROOT, rig, until_ready, worker_process

pytestmark = pytest.mark.slow

Span = dict[str, Any]


def role(settings: Settings, roles: tuple[str, ...], file: Path, *, replays: bool = False) -> Settings:
    """A worker process with some of the roles; `replays` makes every workflow task start from nothing."""
    changes: dict[str, Any] = {"roles": roles, **({"max_cached_workflows": 1} if replays else {})}
    return settings.model_copy(
        update={
            "worker": settings.worker.model_copy(update=changes),
            "telemetry": TelemetrySettings(trace_file=file),
        }
    )


async def test_one_trace_from_action_to_wire_calls(tmp_path: Path) -> None:
    orders, functions = tmp_path / "orders.jsonl", tmp_path / "functions.jsonl"
    model = ModelServer([Reply(text="Rain.", when="weather"), Reply(text="It rains.")])
    async with rig(tmp_path, packages={PACKAGE: guide(asks=True)}, model=model, start_worker=False) as r:
        workflows = role(r.settings, ("workflows",), orders, replays=True)
        handlers = role(r.settings, ("functions",), functions)
        with (
            worker_process(workflows, tmp_path, "orders") as one,
            worker_process(handlers, tmp_path, "functions") as two,
        ):
            await until_ready(one, tmp_path, "orders")
            await until_ready(two, tmp_path, "functions")
            session = await r.session(packages=[PACKAGE])
            acted = await act(r.settings, session.session_id)
            played = (await session.state())["last_turn"]["turn_id"]
            [job] = (await session.turn(played).result())["jobs"]
            await r.client.get_workflow_handle(job_workflow(job["job_id"])).result()
            for process in (one, two):
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 0
        model.assert_calls(2)
    by_process = {"client": acted, "orders": spans(orders), "functions": spans(functions)}
    everything = [span for some in by_process.values() for span in some]
    by_id = {span["context"]["span_id"]: span for span in everything}
    assert len(by_id) == len(everything), "no span is written twice, although workflows were replayed"

    calls = {
        name: [span for span in some if span["name"] == "model.call"] for name, some in by_process.items()
    }
    assert {name: len(some) for name, some in calls.items()} == {"client": 0, "orders": 1, "functions": 1}
    [root] = [span for span in acted if span["parent_id"] is None and "submit" in span["name"]]
    for call in (*calls["orders"], *calls["functions"]):
        assert call["context"]["trace_id"] == root["context"]["trace_id"]
        above = ancestors(call, by_id)
        assert above[-1] == root["name"]
        assert "RunWorkflow:Turn" in above
    ours = [span["name"] for span in everything if span["context"]["trace_id"] == root["context"]["trace_id"]]
    counted = Counter(ours)
    for name in ("RunWorkflow:Turn", "RunWorkflow:Agent", "RunWorkflow:Job", "RunActivity:call_model"):
        assert counted[name] == 1, (name, counted)
    assert counted["RunActivity:run_function"] == 2


async def test_spans_go_to_the_endpoint_of_the_environment(tmp_path: Path) -> None:
    posted = asyncio.Event()
    seen: list[tuple[str, str, int]] = []

    async def collect(request: HttpRequest, response: HttpResponse) -> None:
        seen.append((request.path, request.headers.get("content-type", ""), len(request.body)))
        await response.whole(200, b"")
        posted.set()

    server = HttpServer(collect)
    await server.start()
    try:
        async with rig(tmp_path, start_worker=False) as r:
            settings = r.settings.model_copy(
                update={"telemetry": TelemetrySettings(otlp_endpoint=server.address)}
            )
            with worker_process(settings, tmp_path) as process:
                await until_ready(process, tmp_path)
                session = await r.session(packages=[])
                await session.until(lambda state: state["status"] == "active")
                process.send_signal(signal.SIGTERM)
                await asyncio.wait_for(posted.wait(), 30)
                assert await asyncio.to_thread(process.wait, 30) == 0
    finally:
        await server.close()
    assert {(path, kind) for path, kind, _ in seen} == {("/v1/traces", "application/x-protobuf")}
    assert all(size > 0 for _, _, size in seen)


async def act(settings: Settings, session_id: str) -> list[Span]:
    """Play a turn from a process of its own; its spans."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.running.acting",
        cwd=ROOT,
        env={**os.environ, **settings.to_env(), "SESSION": session_id},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    found: list[Span] = json.loads(output)
    return found


def spans(file: Path) -> list[Span]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def ancestors(span: Span, by_id: dict[str, Span]) -> list[str]:
    found = []
    while span["parent_id"]:
        span = by_id[span["parent_id"]]
        found.append(span["name"])
    return found
