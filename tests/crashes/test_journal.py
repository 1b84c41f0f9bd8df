"""A handler with parallel, repeated and mixed calls dies between them; what it bought is not bought again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from store import data, journal
from tests.crashes.stage import stage
from tests.support.crash_worker import Point, arm
from tests.support.model_server import ModelServer, Reply
from tests.support.packages import STORY
from tests.support.rig import Files
from tests.turns.builders import Fn, entry, package, tool

pytestmark = pytest.mark.slow

_SIGN = '{"type": "object", "properties": {"sign": {"type": "string"}}, "required": ["sign"]}'


def omens(trace: Path) -> Files:
    """The second run of the handler asks in another order, and asks for one thing more."""
    carve = (
        f'open({str(trace)!r}, "a").write("carve " + args["sign"] + "\\n")\n'
        'await ctx.plugin_data.set("signs", args["sign"], 1)\n'
        'return {"carved": args["sign"]}'
    )
    body = (
        f'open({str(trace)!r}, "a").write("handler\\n")\n'
        f'again = open({str(trace)!r}).read().count("handler") > 1\n'
        "say = ctx.gateway.generate_text\n"
        'carve = lambda sign: ctx.tools.call("carve", {"sign": sign})\n'
        'first = [lambda: say("one"), lambda: say("two"), lambda: carve("x"), lambda: carve("y"),\n'
        '         lambda: say("one")]\n'
        "if again:\n"
        '    await say("inserted")\n'
        "    first.reverse()\n"
        "await asyncio.gather(*(call() for call in first))\n"
        'last = await say("three")\n'
        'return {"outcome": "success", "value": {"text": last["text"]}}'
    )
    head = (
        "contributes:\n  tools:\n    - { name: carve, risk: write }\n"
        "  data:\n    signs: { description: Carved signs. }\n"
    )
    server = {"server/__init__.py": entry(tool("carve", carve, _SIGN, risk="write"))}
    run = Fn("{ stage: pre-turn }", body, function="{ tools: { plugin: [carve] } }")
    return package(head, server, read=run)


async def test_parallel_calls_replay_in_any_order(url: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    model = ModelServer([Reply(text="Yes.", times=0)])
    packages = {"tale": STORY, "omens": omens(trace)}
    async with stage(tmp_path, packages=packages, model=model, url=url) as here:
        pair = await here.pair()
        session = await pair.session(["omens", "tale"])
        arm(tmp_path, session.session_id, Point("run_function", "after insert calls", 4))
        result = await session.play("I look up.", timeout_s=60)
        assert result["status"] == "committed"
        assert [run["status"] for run in result["runs"]] == ["success", "success"]
        asked = Counter(call.body["messages"][-1]["content"] for call in model.calls)
        story = asked.total() - asked["one"] - asked["two"] - asked["three"] - asked["inserted"]
        assert (asked["one"], asked["two"], asked["three"], asked["inserted"], story) == (2, 1, 1, 1, 1)
        assert (result["usage"]["calls"], result["usage"]["unknown"]) == (7, 1)
        keys = Counter(call.idempotency_key for call in model.calls)
        assert set(keys.values()) == {1}
        assert Counter(trace.read_text().splitlines()) == {"handler": 2, "carve x": 1, "carve y": 1}
        async with here.rig.store.read() as conn:
            page = await data.list_records(conn, session.session_id, "omens", "signs")
            effects = await journal.list_run(conn, result["turn_id"], "omens/read")
        # a write that two parallel calls had both taken for their own would come twice
        assert [(one.key, one.value, one.version) for one in page.records] == [("x", 1, 1), ("y", 1, 1)]
        assert Counter((effect.kind, effect.attempts) for effect in effects) == {
            ("model", 1): 4,
            ("model", 2): 1,
            ("tool", 1): 2,
        }
