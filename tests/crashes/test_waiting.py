"""What waits survives the death of the worker that began it: an approval, and a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.wire import names
from kernel.wire.ids import job_workflow
from store import data
from tests.crashes.stage import stage, until
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import STORY, function, story_with
from tests.turns.builders import entry, records, tool

pytestmark = pytest.mark.slow

_ACT = 'await ctx.plugin_data.set("done", "it", 1)\nreturn {"done": True}'
GATED = story_with(
    "{plugin: [act]}",
    entry(tool("act", _ACT, needs_approval=True, risk="write")),
    "  tools: [{ name: act, needsApproval: true, risk: write }]\n  data: { done: { description: Deeds. } }\n",
)


async def test_an_approval_outlives_the_worker_that_asked(url: str, tmp_path: Path) -> None:
    script = [Reply(tool_calls=[Call(name="act", id="c")]), Reply(text="Done.")]
    async with stage(tmp_path, packages={"tale": GATED}, model=ModelServer(script), url=url) as here:
        pair = await here.pair(full=False)
        asking = await pair.start()
        session = await pair.session(["tale"])
        receipt = await session.submit("Act.")
        seen = await session.until(lambda state: state["approvals"])
        other = await pair.start()
        await asking.kill()
        answer = {"ref": seen["approvals"][0]["ref"], "decision": "approve"}
        await session.handle.signal(names.RESOLVE, answer)
        result = await session.result(receipt, timeout_s=60)
        assert result["status"] == "committed"
        assert await records(here.rig, session, "tale", "done") == {"it": 1}
        here.rig.model.assert_calls(2)
        assert not other.died.done()


async def test_a_job_commits_once_when_its_worker_dies(url: str, tmp_path: Path) -> None:
    trace, go = tmp_path / "trace", tmp_path / "go"
    body = (
        f'open({str(trace)!r}, "a").write("started\\n")\n'
        f"while not Path({str(go)!r}).exists():\n    await asyncio.sleep(0.01)\n"
        'record = {"namespace": "told", "key": "turn", "value": 1}\n'
        'return {"outcome": "success", "value": {}, "effects": {"pluginData": [record]}}'
    )
    job = function(
        "from pathlib import Path\n" + body,
        stage="post-turn, detached: { settle: true }",
        extra='  effects: { writes: ["plugin-data:self:told"] }\n',
        root="contributes:\n  data: { told: { description: What was told. } }\n",
    )
    script = [Reply(text="It rains.", times=0)]
    packages = {"tale": STORY, "tell": job}
    async with stage(tmp_path, packages=packages, model=ModelServer(script), url=url) as here:
        pair = await here.pair(full=False)
        first = await pair.start()
        session = await pair.session(["tale", "tell"])
        result = await session.play("I wait.")
        job_id = result["jobs"][0]["job_id"]
        await until(trace.exists)
        await pair.start()
        await first.kill()
        go.touch()
        ended = await here.rig.client.get_workflow_handle(job_workflow(job_id)).result()
        assert ended["status"] == "succeeded"
        assert trace.read_text() == "started\n" * 2
        async with here.rig.store.read() as conn:
            record = await data.get(conn, session.session_id, "tell", "told", "turn")
        assert record is not None
        assert (record.value, record.version) == (1, 1)
        assert (await session.play("And now?"))["status"] == "committed"
