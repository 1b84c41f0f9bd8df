"""Leaving a process, and keeping the SDK's own logs off stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_leaving_flushes_and_keeps_the_status() -> None:
    script = (
        "import logging, sys, logging.handlers\n"
        "from link.exit import leave\n"
        "late = logging.handlers.MemoryHandler(100, target=logging.StreamHandler(sys.stderr))\n"
        "logging.getLogger('x').addHandler(late)\n"
        "logging.getLogger('x').error('logged')\n"
        "sys.stdout.write('printed')\n"
        "leave(3)\n"
    )
    done = run(script)
    assert (done.returncode, done.stdout) == (3, "printed")
    assert done.stderr == "logged\n"


def test_leaving_survives_a_closed_pipe() -> None:
    script = "import sys\nfrom link.exit import leave\nprint('x' * 100)\nsys.stdout.close()\nleave(4)\n"
    assert run(script).returncode == 4


@pytest.mark.slow
def test_core_logs_go_to_logging_and_not_to_stdout() -> None:
    script = (
        "import asyncio, logging, sys\n"
        "from datetime import timedelta\n"
        "from temporalio import workflow\n"
        "from temporalio.worker import Worker, UnsandboxedWorkflowRunner\n"
        "from link.connect import connect\n"
        "from link.exit import leave\n"
        "from link.settings import load_settings\n"
        "from tests.support.temporal import shared_dev_server\n"
        "@workflow.defn\n"
        "class Broken:\n"
        "    @workflow.run\n"
        "    async def run(self) -> None:\n"
        "        raise ValueError('broken on purpose')\n"
        "class Heard(logging.Handler):\n"
        "    def __init__(self, loop, event):\n"
        "        super().__init__()\n"
        "        self.loop, self.event = loop, event\n"
        "    def emit(self, record):\n"
        "        if 'sdk_core' in f'{record.name} {record.getMessage()}':\n"
        "            self.loop.call_soon_threadsafe(self.event.set)\n"
        "async def main():\n"
        "    heard = asyncio.Event()\n"
        "    logging.getLogger().addHandler(Heard(asyncio.get_running_loop(), heard))\n"
        "    client = await connect(load_settings({'TURNWRIGHT_ADDRESS': shared_dev_server()}))\n"
        "    parts = dict(workflows=[Broken], workflow_runner=UnsandboxedWorkflowRunner())\n"
        "    async with Worker(client, task_queue='broken', **parts):\n"
        "        await client.start_workflow(Broken.run, id='broken', task_queue='broken')\n"
        "        await asyncio.wait_for(heard.wait(), 30)\n"
        "logging.basicConfig(stream=sys.stderr)\n"
        "asyncio.run(main())\n"
        "leave(0)\n"
    )
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "")
    assert "sdk_core" in done.stderr


@pytest.mark.parametrize("form", ["json", ""])
def test_a_refusal_of_a_process_is_a_line_of_its_log(form: str) -> None:
    script = (
        "import os, sys\n"
        "os.environ['TURNWRIGHT_LOG_FORMAT'] = sys.argv[1]\n"
        "from kernel.errors import Code, TurnwrightError\n"
        "from link import logs\n"
        "logs.begin('INFO')\n"
        "logs.refuse(TurnwrightError(Code.CONFIG_INVALID, 'two\\nlines'))\n"
    )
    said = run(script, form).stderr
    if form:
        line = json.loads(said)
        assert (line["level"], line["code"]) == ("error", "config.invalid")
        assert "two\nlines" in line["message"]
    else:
        assert said.startswith("error: config.invalid: two\nlines")
