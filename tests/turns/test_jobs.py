"""Detached runs: they start after the commit, commit by themselves, and the next action waits for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel.wire import names
from kernel.wire.ids import job_id_for, job_workflow
from store import jobs
from tests.support.model_server import ModelServer, Reply
from tests.support.rig import Files, Rig, SessionDriver, rig
from tests.turns.builders import OK, Fn, ended, nodes, package, records, until

pytestmark = pytest.mark.slow

EFFECTS = 'effects: { writes: ["plugin-data:self:notes"] }\n'
NOTE = 'await ctx.plugin_data.set("notes", f"t{ctx.logical_turn}", 1)\n' + OK


def waits_for(file: Path) -> str:
    return f"while not Path({str(file)!r}).exists():\n    await asyncio.sleep(0.01)\n"


def leaves(body: str, options: str = "{settle: true}", more: str = "", before: str = OK) -> Files:
    """A package whose `work/job` is detached."""
    return package(
        job=Fn(f"{{stage: post-turn, after: [work/first], detached: {options}}}", body, more=more or EFFECTS),
        first=Fn("{stage: pre-turn}", before),
    )


async def status(r: Rig, job_id: str) -> tuple[str, str]:
    async with r.store.read() as conn:
        job = await jobs.get(conn, job_id)
    assert job is not None
    return job.status, job.reason


async def until_status(r: Rig, job_id: str, *expected: str, timeout_s: float = 15.0) -> tuple[str, str]:
    found: tuple[str, str] = await until(
        lambda: status(r, job_id), lambda found: found[0] in expected, timeout_s
    )
    return found


async def left_by(session: SessionDriver, text: str = "go") -> tuple[dict[str, Any], str]:
    """Play a turn; its result and the job it left."""
    result = await session.play(text)
    return result, result["jobs"][0]["job_id"]


async def test_a_job_starts_after_the_commit_and_commits_by_itself(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with rig(tmp_path, packages={"work": leaves(waits_for(go) + NOTE)}) as r:
        session = await r.session(packages=["work"])
        result, job_id = await left_by(session)
        assert result["status"] == "committed"
        assert ended(result) == {"work/first": "success"}
        assert job_id == job_id_for(result["turn_id"], "work/job")
        assert await records(r, session, "work", "notes") == {}
        await until_status(r, job_id, "running")
        go.touch()
        assert await until_status(r, job_id, "succeeded") == ("succeeded", "")
        assert await records(r, session, "work", "notes") == {"t1": 1}
        await session.until(lambda state: state["jobs"] == [])


async def test_a_job_reads_the_outputs_that_its_turn_committed(tmp_path: Path) -> None:
    keep = 'await ctx.plugin_data.set("notes", "x", ctx.inputs["n"]["value"])\n' + OK
    work = package(
        job=Fn(
            "{stage: post-turn, detached: {settle: true}}",
            keep,
            io="{inputs: {n: {from: {runtime: work/first}, select: /n}}}",
            more=EFFECTS,
        ),
        first=Fn("{stage: pre-turn}", 'return {"outcome": "success", "value": {"n": 7}}'),
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        await until_status(r, job_id, "succeeded")
        assert await records(r, session, "work", "notes") == {"x": 7}


async def test_the_next_action_waits_for_a_settling_job(tmp_path: Path) -> None:
    go = tmp_path / "go"
    seen = (
        'found = await ctx.plugin_data.get("notes", "t1")\n'
        'await ctx.plugin_data.set("seen", f"t{ctx.logical_turn}", found)\n' + OK
    )
    async with rig(tmp_path, packages={"work": leaves(waits_for(go) + NOTE, before=seen)}) as r:
        session = await r.session(packages=["work"])
        await left_by(session)
        receipt = await session.submit("again")
        waits = await session.until(lambda state: state["jobs"] and state["running"] is None)
        assert len(waits["queue"]) == 1
        go.touch()
        await session.result(receipt)
        assert (await records(r, session, "work", "seen"))["t2"] == 1
        assert (await session.state())["notices"] == []


async def test_the_next_action_waits_no_longer_than_the_job_allows(tmp_path: Path) -> None:
    body = waits_for(tmp_path / "never") + OK
    async with rig(tmp_path, packages={"work": leaves(body, "{settle: true, maxSettleWaitMs: 300}")}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        assert (await session.play("again", timeout_s=10))["status"] == "committed"
        assert [notice["code"] for notice in (await session.state())["notices"]] == ["session.settle-timeout"]
        assert (await status(r, job_id))[0] == "running"
        (tmp_path / "never").touch()


async def test_a_job_that_does_not_settle_holds_nobody(tmp_path: Path) -> None:
    body = waits_for(tmp_path / "never") + OK
    async with rig(tmp_path, packages={"work": leaves(body, "true")}) as r:
        session = await r.session(packages=["work"])
        await left_by(session)
        assert (await session.play("again", timeout_s=10))["status"] == "committed"
        assert (await session.state())["notices"] == []
        (tmp_path / "never").touch()


async def test_a_job_that_raises_is_recorded_as_failed_and_commits_nothing(tmp_path: Path) -> None:
    body = 'await ctx.plugin_data.set("notes", "x", 1)\nraise ValueError("no")'
    async with rig(tmp_path, packages={"work": leaves(body)}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        assert await until_status(r, job_id, "failed") == ("failed", "runtime.failed")
        assert await records(r, session, "work", "notes") == {}
        assert (await session.play("again"))["status"] == "committed"


async def test_a_job_past_its_time_is_recorded_as_timed_out(tmp_path: Path) -> None:
    body = waits_for(tmp_path / "never") + OK
    async with rig(tmp_path, packages={"work": leaves(body, "{settle: true, maxExecutionMs: 300}")}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        assert await until_status(r, job_id, "timed_out") == ("timed_out", "runtime.timeout")


async def test_the_handlers_own_limit_holds_in_a_job_too(tmp_path: Path) -> None:
    work = package(
        job=Fn(
            "{stage: post-turn, detached: true}",
            waits_for(tmp_path / "never") + OK,
            more=EFFECTS,
            function="{timeoutMs: 300}",
        )
    )
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        assert await until_status(r, job_id, "timed_out") == ("timed_out", "runtime.timeout")


async def test_a_job_cannot_change_what_belongs_to_turns(tmp_path: Path) -> None:
    patch = '{"path": "/score", "ops": [{"op": "inc", "path": "/n", "by": 1}]}'
    body = f'return {{"outcome": "success", "value": {{}}, "effects": {{"statePatches": [{patch}]}}}}'
    async with rig(tmp_path, packages={"work": leaves(body)}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        assert await until_status(r, job_id, "failed") == ("failed", "commit.proposal-invalid")


async def test_the_job_of_an_ended_session_is_stale_and_commits_nothing(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with rig(tmp_path, packages={"work": leaves(waits_for(go) + NOTE)}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        await until_status(r, job_id, "running")
        await session.update(names.CONTROL, {"action": "end"})
        await session.handle.result()
        go.touch()
        assert (await r.client.get_workflow_handle(job_workflow(job_id)).result())["status"] == "stale"
        assert await status(r, job_id) == ("stale", "session.stale-incarnation")
        assert await records(r, session, "work", "notes") == {}


async def test_a_job_whose_workflow_was_terminated_is_noticed_and_holds_nobody(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": leaves(waits_for(tmp_path / "go") + NOTE)}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        await until_status(r, job_id, "running")
        await r.client.get_workflow_handle(job_workflow(job_id)).terminate("by a test")
        state = await session.until(lambda state: state["jobs"] == [])
        assert [notice["code"] for notice in state["notices"]] == ["workflow.failed"]
        assert job_id in state["notices"][0]["message"]
        assert (await status(r, job_id))[0] == "failed"
        (tmp_path / "go").touch()
        assert (await session.play("again"))["status"] == "committed"


async def test_jobs_of_a_lost_session_end_when_it_starts_anew(tmp_path: Path) -> None:
    go = tmp_path / "go"
    work = leaves(NOTE, before=waits_for(go) + OK)
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.submit("go")
        await session.until(lambda state: state["running"])
        await session.handle.terminate("by a test")
        go.touch()
        [job] = (await session.result(receipt))["jobs"]
        assert await status(r, job["job_id"]) == ("queued", "")  # nobody is there to start it
        again = await r.session(session.session_id, packages=["work"])
        assert await until_status(r, job["job_id"], "stale") == ("stale", "session.stale-incarnation")
        assert (await again.play("on"))["logical_turn"] == 2


async def test_a_cancelled_job_is_recorded_as_cancelled(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": leaves(waits_for(tmp_path / "go") + NOTE)}) as r:
        session = await r.session(packages=["work"])
        _, job_id = await left_by(session)
        await until_status(r, job_id, "running")
        await r.client.get_workflow_handle(job_workflow(job_id)).cancel()
        assert (await until_status(r, job_id, "cancelled"))[0] == "cancelled"
        await session.until(lambda state: state["jobs"] == [])
        assert await records(r, session, "work", "notes") == {}


async def test_an_ineligible_detached_runtime_stays_in_the_turn_and_says_why(tmp_path: Path) -> None:
    work = leaves(OK, more='effects: { writes: ["state:*"] }\n')
    async with rig(tmp_path, packages={"work": work}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert ended(result) == {"work/first": "success", "work/job": "success"}
        assert "jobs" not in result
        graph = await session.turn(result["turn_id"]).query("graph")
        assert [said for said in graph["diagnostics"] if "state:*" in said]


async def test_a_deferred_runtime_shows_in_the_graph_as_deferred(tmp_path: Path) -> None:
    async with rig(tmp_path, packages={"work": leaves(NOTE)}) as r:
        session = await r.session(packages=["work"])
        result = await session.play("go")
        assert (await nodes(session, result["turn_id"]))["work/job"]["status"] == "deferred"


async def test_a_job_that_depends_on_a_dropped_run_does_not_start(tmp_path: Path) -> None:
    op = '{"op": "inc", "path": "/n", "by": 9, "max": 5}'
    patches = f'{{"statePatches": [{{"path": "/s", "ops": [{op}]}}]}}'
    conflict = f'return {{"outcome": "success", "value": {{}}, "effects": {patches}}}'
    work = package(
        job=Fn("{stage: post-turn, needs: [work/first], detached: {settle: true}}", NOTE, more=EFFECTS),
        first=Fn("{stage: pre-turn}", conflict),
    )
    tale = {
        "PLUGIN.md": "---\ndescription: A story.\nruntime:\n  schedule: { stage: narrative }\n"
        "  io: { visibility: story, output: { contract: narrative-engine@2 } }\n---\nTell.\n"
    }
    model = ModelServer([Reply(text="Rain.")])
    async with rig(tmp_path, packages={"work": work, "tale": tale}, model=model) as r:
        session = await r.session(packages=["work", "tale"])
        result = await session.play("go")
        assert result["status"] == "committed"
        assert "jobs" not in result
        async with r.store.read() as conn:
            assert await jobs.list_jobs(conn, session.session_id) == []


async def test_a_stopped_turn_leaves_no_job(tmp_path: Path) -> None:
    body = waits_for(tmp_path / "never") + OK
    async with rig(tmp_path, packages={"work": leaves(NOTE, before=body)}) as r:
        session = await r.session(packages=["work"])
        receipt = await session.submit("go")
        await session.until(lambda state: state["running"])
        await session.update(names.CONTROL, {"action": "cancel-turn"})
        assert (await session.result(receipt))["status"] == "stopped"
        async with r.store.read() as conn:
            assert await jobs.list_jobs(conn, session.session_id) == []
        (tmp_path / "never").touch()
