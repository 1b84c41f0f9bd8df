"""A client as a process of its own: plays one turn and prints its spans, `python -m tests.running.acting`.

OpenTelemetry knows one provider per process, so that a test must not have one of its own.
"""

from __future__ import annotations

import asyncio
import json
import os

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from client.api import Turnwright
from link import telemetry
from link.exit import leave
from link.settings import load_settings


async def act(session_id: str) -> None:
    """Submit one action to a session and wait for its turn."""
    exporter = InMemorySpanExporter()
    telemetry.export_to(exporter)
    async with await Turnwright.connect(load_settings()) as turnwright:
        await turnwright.wait(await turnwright.submit(session_id, "I look up."))
    print(json.dumps([json.loads(span.to_json()) for span in exporter.get_finished_spans()]))


if __name__ == "__main__":
    asyncio.run(act(os.environ["SESSION"]))
    leave(0)
