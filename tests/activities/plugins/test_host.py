from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from activities.plugins.host import invoke
from activities.plugins.methods import PARAMETERS
from kernel.errors import Code, TurnwrightError
from kernel.manifest.contributes import ContributedTool
from kernel.wire.host import METHODS
from tests.activities.plugins.packages import ENTRY, answers, call, load

HANG = "async def handler(ctx):\n    await __import__('asyncio').Event().wait()\n"
TOOLS = """
from pydantic import BaseModel
from turnwright.sdk import ToolError
class Args(BaseModel):
    name: str
async def greet(args, ctx):
    if args.name == "nobody":
        raise ToolError("unavailable", "nobody is there")
    if args.name == "everybody":
        return ctx.world.characters
    await ctx.plugin_data.set("met", args.name, {"turn": ctx.logical_turn})
    state = await ctx.state.get("/mood")
    return {"_text": f"Hello {args.name}", "state": state, "absent": [ctx.gateway, ctx.utils]}
def register(host):
    host.register_tool(name="greet", description="Greets.", parameters=Args, handler=greet)
"""

pytestmark = pytest.mark.usefixtures("transport")


async def ending(tmp_path: Path, source: str, methods: dict[str, Any] | None = None) -> TurnwrightError:
    code = load(tmp_path, {"handler.py": source})
    with pytest.raises(TurnwrightError) as caught:
        await invoke(code, call(), methods or {}, timeout_s=2)
    return caught.value


def handler(*lines: str) -> str:
    return "from turnwright.sdk import ToolError\nasync def handler(ctx):\n" + "".join(
        f"    {x}\n" for x in lines
    )


async def refuse(params: dict[str, Any]) -> Any:
    raise TurnwrightError(Code.MODEL_UNCONFIGURED, "no slot", accepted="configure it")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("raise ValueError('bad')", Code.RUNTIME_FAILED, "handler.py:3: ValueError: bad"),
        ("raise SystemExit(1)", Code.RUNTIME_FAILED, "handler.py:3: SystemExit: 1"),
        ("raise KeyboardInterrupt", Code.RUNTIME_FAILED, "handler.py:3: KeyboardInterrupt"),
        ("raise __import__('asyncio').CancelledError", Code.RUNTIME_FAILED, "cancelled itself"),
        ("raise ValueError('x' * 1000)", Code.RUNTIME_FAILED, "handler.py:3: ValueError: xxx"),
        ("raise ToolError('tool.denied', 'no')", Code.TOOL_DENIED, "no"),
        ("raise ToolError('conflict', 'taken')", Code.RUNTIME_FAILED, "taken"),
        ("raise ToolError('turn.rejected', 'mine')", Code.RUNTIME_FAILED, "mine"),
        ("ctx.services.discover('a@1')", Code.NOT_SUPPORTED, "ctx.services is not in this version"),
        ("ctx.world.characters", Code.NOT_SUPPORTED, "ctx.world is not in this version"),
        ("await ctx.recursive_call('x')", Code.NOT_SUPPORTED, "ctx.recursive_call is not in this version"),
        ("await ctx.tools.call('x')", Code.HANDLER_CAPABILITY, "'tools.call' is not available"),
        ("await ctx.state.get('/')", Code.MODEL_UNCONFIGURED, "no slot (accepted: configure it)"),
    ],
)
async def test_every_failure_becomes_a_code(tmp_path: Path, line: str, code: Code, said: str) -> None:
    error = await ending(tmp_path, handler(line), {"state.get": refuse})
    assert error.code == code
    assert said in error.message
    assert len(error.message) <= 300
    assert error.where == "demo"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("await ctx.plugin_data.get('n', 5)", "plugin_data.get: key: Input should be a valid string"),
        ("await ctx.plugin_data.list('n', limit='3')", "plugin_data.list: limit: "),
        ("await ctx.plugin_data.list('n', limit=0)", "plugin_data.list: limit: "),
        ("await ctx.tools.call('t' * 200)", "tools.call: name: "),
        ("await ctx.progress.report('x', fraction=2)", "progress.report: fraction: "),
        ("await ctx.gateway.generate_object('x', schema=5)", "gateway.generate_object: schema: "),
        ("await ctx.gateway.generate_text(messages=[{}])", "gateway.generate_text: messages/0/role: "),
        (
            "await ctx.gateway.generate_text(messages=[{'role': 'player', 'content': 'x'}])",
            "messages/0/role: Input should be 'system', 'user' or 'assistant'",
        ),
        ("await ctx.plugin_data.get('n', 'a\\0')", "plugin_data.get: key: Value error, NUL is in no name"),
        ("await ctx.plugin_data.list('n', prefix='\\0')", "plugin_data.list: prefix: "),
        ("await ctx.state.get('/\\0')", "state.get: path: "),
        ("await ctx.utils.fetch_with_retry('https://x.org', method='TRACE')", "http.fetch: method: "),
    ],
)
async def test_wrong_parameters_are_the_packages_mistake(tmp_path: Path, line: str, said: str) -> None:
    code = load(tmp_path, {"handler.py": handler(line)})
    methods = dict.fromkeys(METHODS, answers(None))
    with pytest.raises(TurnwrightError) as caught:
        await invoke(code, call(gateway=True, http=True), methods, timeout_s=1)
    assert caught.value.code == Code.TOOL_ARGUMENTS
    assert said in caught.value.message


def test_every_method_has_its_parameters() -> None:
    assert PARAMETERS.keys() == METHODS.keys()


async def test_a_packages_own_word_is_kept_beside_the_code(tmp_path: Path) -> None:
    error = await ending(tmp_path, handler("raise ToolError('conflict', 'taken')"))
    assert error.details == {"code": "conflict"}


async def test_code_can_go_on_after_a_refused_call(tmp_path: Path) -> None:
    lines = ("try:", "    await ctx.state.get()", "except ToolError as e:", "    return e.code")
    code = load(tmp_path, {"handler.py": handler(*lines)})
    assert await invoke(code, call(), {"state.get": refuse}, timeout_s=1) == "model.unconfigured"


async def test_code_that_hangs_is_timed_out(tmp_path: Path) -> None:
    with pytest.raises(TurnwrightError) as caught:
        await invoke(load(tmp_path, {"handler.py": HANG}), call(), {}, timeout_s=0.02)
    assert caught.value.code == Code.RUNTIME_TIMEOUT


async def test_our_own_defect_is_not_the_packages_failure(tmp_path: Path) -> None:
    lines = ("try:", "    await ctx.state.get()", "except Exception:", "    return 'swallowed'")
    code = load(tmp_path, {"handler.py": handler(*lines)})

    async def defect(params: dict[str, Any]) -> None:
        raise ZeroDivisionError

    async def lost(params: dict[str, Any]) -> None:
        raise TurnwrightError(Code.STORE_UNREACHABLE, "gone")

    async def late(params: dict[str, Any]) -> None:
        raise TimeoutError("a connection")

    for method, expected in ((defect, ZeroDivisionError), (lost, TurnwrightError), (late, TimeoutError)):
        with pytest.raises(expected):
            await invoke(code, call(), {"state.get": method}, timeout_s=1)


async def test_calls_at_once_are_answered_in_any_order(tmp_path: Path) -> None:
    line = "return await __import__('asyncio').gather(*(ctx.plugin_data.get('n', k) for k in 'abc'))"
    code = load(tmp_path, {"handler.py": handler(line)})
    first = asyncio.Event()

    async def get(params: dict[str, Any]) -> str:
        if params["key"] == "c":
            first.set()
        await first.wait()
        return str(params["key"])

    assert await invoke(code, call(), {"plugin_data.get": get}, timeout_s=1) == ["a", "b", "c"]


async def test_log_lines_arrive_and_a_line_that_cannot_be_told_fails_no_run(tmp_path: Path) -> None:
    lines = ("ctx.logger.info('a', n=1, at=ctx.now)", "ctx.logger.error('x' * 2**21)", "return 1")
    code = load(tmp_path, {"handler.py": handler(*lines)})
    told: list[Any] = []

    async def log(params: dict[str, Any]) -> None:
        told.append((params["level"], params["message"], params["fields"]["n"]))

    assert await invoke(code, call(), {"log": log}, timeout_s=1) == 1
    assert told == [("info", "a", 1)]
    assert await invoke(code, call(), {}, timeout_s=1) == 1


async def test_the_tick_starts_at_once(tmp_path: Path) -> None:
    ticks: list[None] = []
    code = load(tmp_path, {"handler.py": handler("return await ctx.state.get()")})
    await invoke(code, call(), {"state.get": answers(1)}, timeout_s=1, on_tick=lambda: ticks.append(None))
    assert len(ticks) == 1


async def test_a_guard_reads_and_does_not_write(tmp_path: Path) -> None:
    source = "async def guard(ctx):\n    await ctx.plugin_data.set('n', 'k', 1)\n"
    code = load(tmp_path, {"guard.py": source})
    with pytest.raises(TurnwrightError) as caught:
        await invoke(code, call("guard", "guard.py"), {"plugin_data.set": answers(None)}, timeout_s=1)
    assert caught.value.code == Code.HANDLER_CAPABILITY


async def test_a_tool_gets_its_model_and_stages_writes(tmp_path: Path) -> None:
    code = load(tmp_path, {ENTRY: TOOLS}, tools=(ContributedTool(name="greet"),))
    staged: list[Any] = []

    async def write(params: dict[str, Any]) -> None:
        staged.append(params)

    methods = {"plugin_data.set": write, "state.get": answers("calm")}
    result = await invoke(code, call("tool", ENTRY, "greet", {"name": "Mara"}), methods, timeout_s=1)
    assert result == {"_text": "Hello Mara", "state": "calm", "absent": [None, None]}
    assert staged == [{"namespace": "met", "key": "Mara", "value": {"turn": 3}}]


@pytest.mark.parametrize(
    ("name", "args", "code", "said"),
    [
        ("greet", {"name": 5}, Code.TOOL_VALIDATION, "name: Input should be a valid string"),
        ("greet", {"name": "nobody"}, Code.TOOL_FAILED, "nobody is there"),
        ("greet", {"name": "everybody"}, Code.NOT_SUPPORTED, "ctx.world is not in this version"),
        ("great", {}, Code.TOOL_UNKNOWN, "registers no tool 'great'"),
    ],
)
async def test_a_tools_failure_becomes_a_code(
    tmp_path: Path, name: str, args: Any, code: Code, said: str
) -> None:
    package = load(tmp_path, {ENTRY: TOOLS}, tools=(ContributedTool(name="greet"),))
    with pytest.raises(TurnwrightError) as caught:
        await invoke(package, call("tool", ENTRY, name, args), {}, timeout_s=1)
    assert caught.value.code == code
    assert said in caught.value.message
