"""Catalogue F: workers that stop, runs that fail late, jobs that outlive what started them."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from kernel.wire import names
from kernel.wire.ids import job_workflow
from store import jobs
from tests.crashes.stage import stage, until
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import STORY, function, story_with
from tests.support.rig import Files, rig
from tests.turns.builders import entry, records, tool

pytestmark = pytest.mark.slow


def acting_story(trace: Path, *tools: str) -> Files:
    """A story whose tools leave a line each."""
    made = [tool(name, f'open({str(trace)!r}, "a").write("{name}\\n")\nreturn {{}}') for name in tools]
    declared = "".join(f"    - {{ name: {name} }}\n" for name in tools)
    return story_with(f"{{plugin: [{', '.join(tools)}]}}", entry(*made), f"  tools:\n{declared}")


def waiting_job(started: Path, go: Path, before: str = "") -> Files:
    """A detached function that says it runs, and writes a record once it may go on."""
    body = (
        f"from pathlib import Path\n{before}\n"
        f"Path({str(started)!r}).touch()\n"
        f"while not Path({str(go)!r}).exists():\n    await asyncio.sleep(0.01)\n"
        'record = {"namespace": "told", "key": ctx.turn_id, "value": 1}\n'
        'return {"outcome": "success", "value": {}, "effects": {"pluginData": [record]}}'
    )
    return function(
        body,
        stage="post-turn, detached: { settle: false }",
        extra='  effects: { writes: ["plugin-data:self:told"] }\n',
        root="contributes:\n  data: { told: { description: What was told. } }\n",
    )


async def test_f1_a_stop_while_a_tool_runs_closes_the_turn(tmp_path: Path) -> None:
    started = tmp_path / "started"
    body = f'open({str(started)!r}, "w").close()\nawait asyncio.Event().wait()'
    tale = story_with("{plugin: [act]}", entry(tool("act", body)), "  tools:\n    - { name: act }\n")
    model = ModelServer([Reply(tool_calls=[Call(name="act", id="c")])])
    async with rig(tmp_path, packages={"tale": tale}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("Act.")
        await until(started.exists)
        turn = session.turn(receipt["turn_id"])
        await asyncio.gather(session.update(names.CONTROL, {"action": "cancel-turn"}), turn.cancel())
        assert (await session.result(receipt))["status"] == "stopped"
        await session.until(lambda state: state["running"] is None)


async def test_f3_a_worker_that_stops_hands_its_model_call_on(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It was", stall_after=1), Reply(text="It rains.", times=0)])
    async with stage(tmp_path, packages={"tale": STORY}, model=model) as here:
        pair = await here.pair(full=False)
        stopping = await pair.start()
        session = await pair.session(["tale"])
        receipt = await session.submit("I look up.")
        await model.held.wait()
        await pair.start()
        stopping.send(signal.SIGTERM)
        assert await stopping.died == 0
        result = await session.result(receipt, timeout_s=60)
        assert (result["status"], result["story"]["text"]) == ("committed", "It rains.")
        assert (result["usage"]["calls"], result["usage"]["unknown"]) == (2, 1)
        assert model.left.is_set()
        assert len({(call.idempotency_key, call.raw_body) for call in model.calls}) == 1
        model.assert_calls(2)


async def test_f3_a_stop_of_the_player_reaches_the_model_call(tmp_path: Path) -> None:
    model = ModelServer([Reply(text="It was a dark", stall_after=1)])
    async with rig(tmp_path, packages={"tale": STORY}, model=model) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("I look up.")
        await model.held.wait()
        await session.update(names.CONTROL, {"action": "cancel-turn"})
        result = await session.result(receipt)
        async with asyncio.timeout(20):
            await model.left.wait()
        assert (result["status"], result["reason"]) == ("stopped", "turn.stopped")
        model.assert_calls(1)


async def test_f5_a_late_failure_repeats_no_effect(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    acts = [Call(name=name, id=name) for name in ("one", "two", "three")]
    model = ModelServer([Reply(tool_calls=acts), Reply(status=400, body='{"error": {"message": "no"}}')])
    packages = {"tale": acting_story(trace, "one", "two", "three")}
    async with rig(tmp_path, packages=packages, model=model) as r:
        session = await r.session(packages=["tale"])
        result = await session.play("Act.")
        assert (result["status"], result["reason"]) == ("rejected", "model.invalid-request")
        assert Counter(trace.read_text().split()) == {"one": 1, "two": 1, "three": 1}
        r.model.assert_calls(2)


async def test_f14_one_run_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    go = tmp_path / "go"
    poison = function(
        f"from pathlib import Path\nwhile not Path({str(go)!r}).exists():\n    await asyncio.sleep(0.01)\n"
        'raise RuntimeError("poison")'
    )
    model = ModelServer([Reply(text="It rains.", times=0)])
    async with rig(tmp_path, packages={"tale": STORY, "poison": poison}, model=model) as r:
        bad = await r.session(packages=["tale", "poison"])
        receipt = await bad.submit("I wait.")
        sessions = [await r.session(packages=["tale"]) for _ in range(9)]
        results = await asyncio.gather(*(session.play("I go.", timeout_s=60) for session in sessions))
        assert [result["status"] for result in results] == ["committed"] * 9
        go.touch()
        result = await bad.result(receipt)
        assert result["status"] == "committed"
        assert {run["runtime_id"]: run["status"] for run in result["runs"]} == {
            "poison": "failed",
            "tale": "success",
        }


async def test_f17_a_job_outlives_the_session_that_started_it(tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    packages = {"tale": STORY, "tell": waiting_job(started, go)}
    async with rig(tmp_path, packages=packages, model=ModelServer([Reply(text="It rains.")])) as r:
        session = await r.session(packages=["tale", "tell"])
        result = await session.play("I wait.")
        await until(started.exists)
        await session.update(names.CONTROL, {"action": "end"})
        await session.handle.result()
        job = r.client.get_workflow_handle(job_workflow(result["jobs"][0]["job_id"]))
        go.touch()
        assert (await job.result())["status"] == "stale"
        assert await records(r, session, "tell", "told") == {}


async def test_f19_a_job_outlives_its_turn_and_is_listed_and_stoppable(tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    packages = {
        "tale": STORY,
        "tell": waiting_job(started, go, before="await ctx.gateway.generate_text(prompt='Who?')"),
    }
    model = ModelServer([Reply(text="It rains.", times=0)])
    async with rig(tmp_path, packages=packages, model=model) as r:
        session = await r.session(packages=["tale", "tell"])
        first = await session.play("I wait.")
        await until(started.exists)
        started.unlink()
        second = await session.play("I wait again.")
        await until(started.exists)
        kept, stopped = (result["jobs"][0]["job_id"] for result in (first, second))
        state = await session.state()
        assert {open_job["job"]["job_id"] for open_job in state["jobs"]} == {kept, stopped}
        handle = r.client.get_workflow_handle(job_workflow(stopped))
        await handle.cancel()
        cancelled = await handle.result()
        assert (cancelled["status"], cancelled["usage"]["calls"]) == ("cancelled", 1)
        go.touch()
        succeeded = await r.client.get_workflow_handle(job_workflow(kept)).result()
        assert (succeeded["status"], succeeded["usage"]) == ("succeeded", cancelled["usage"])
        await session.until(lambda state: not state["jobs"])
        assert await records(r, session, "tell", "told") == {first["turn_id"]: 1}
        async with r.store.read() as conn:
            ended = {job_id: await jobs.get(conn, job_id) for job_id in (kept, stopped)}
        assert [job and job.status for job in ended.values()] == ["succeeded", "cancelled"]
        assert [job and job.usage["calls"] for job in ended.values()] == [1, 1]
