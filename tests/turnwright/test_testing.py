"""What package authors test with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import turnwright.testing
from kernel.errors import Code, TurnwrightError
from turnwright.sdk import Host, ToolError
from turnwright.testing import (
    ScriptedModel,
    TestData,
    call_test_service,
    execute_tool_and_commit,
    function_context,
    play_package,
    seeded_random,
    tool_context,
)

DICE = Path(__file__).parents[2] / "plugins" / "dice"
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Price(BaseModel):
    item: str
    cost: int


async def keep(args: dict[str, Any], ctx: Any) -> Any:
    await ctx.plugin_data.set("notes", args["text"], {"n": ctx.random.int(0, 10)})
    if args["text"] == "bad":
        raise ToolError("unavailable", "not today")
    return {"kept": args["text"]} if args["text"] != "odd" else "odd"


async def price(asked: Price, ctx: Any) -> Any:
    if asked.cost > 3:
        await ctx.plugin_data.set("purse", "coins", asked.cost)
    return {"item": asked.item} if asked.item != "nothing" else {}


def register(host: Host) -> None:
    kept = {"type": "object", "required": ["kept"]}
    host.register_tool(name="keep", description="Keeps.", parameters=NOTE, handler=keep, output=kept)
    answer = {"type": "object", "required": ["item"]}
    shapes: dict[str, Any] = {"contract": "stock.price@1", "input": Price, "output": answer, "handler": price}
    host.register_service(name="ask", **shapes)
    host.register_service(name="change", access="write", **shapes | {"contract": "stock.change@1"})


async def test_a_handler_reads_and_writes_dictionaries() -> None:
    data = TestData(records={"facts": {"a": 1, "b": 2}}, state={"mood": {"now": "calm"}})
    ctx = function_context(data, player_message="I knock.", user_settings={"tone": "dry"}, locale="zh")
    await ctx.plugin_data.set("facts", "c", 3)
    await ctx.plugin_data.delete("facts", "a")
    assert [record["key"] for record in await ctx.plugin_data.list("facts")] == ["b", "c"]
    assert await ctx.plugin_data.get("facts", "a") is None
    assert await ctx.state.get("/mood/now") == "calm"
    assert await ctx.state.get("/mood/then") is None
    assert (ctx.player_message, ctx.user_settings["tone"], ctx.locale) == ("I knock.", "dry", "zh")
    assert data.records == {"facts": {"a": 1, "b": 2}}
    data.commit()
    assert data.records == {"facts": {"b": 2, "c": 3}}


async def test_what_a_test_does_not_give_is_absent_as_in_a_run() -> None:
    ctx = function_context()
    assert (ctx.gateway, ctx.utils) == (None, None)
    with pytest.raises(ToolError) as caught:
        await ctx.tools.call("look")
    assert caught.value.code == Code.TOOL_UNKNOWN
    with pytest.raises(ToolError) as refused:
        await ctx.plugin_data.set("n", "k", {1: 2})
    assert refused.value.code == Code.WIRE_MALFORMED


async def test_a_scripted_model_answers_in_order_and_keeps_what_it_was_asked() -> None:
    model = ScriptedModel(["Rain.", {"n": 1}, ToolError("model.overloaded", "later")])
    ctx = function_context(model=model)
    assert ctx.gateway is not None
    assert (await ctx.gateway.generate_text("Weather?"))["text"] == "Rain."
    assert (await ctx.gateway.generate_object("Count.", schema={"type": "object"}))["object"] == {"n": 1}
    for code in ("model.overloaded", Code.MODEL_UNCONFIGURED):
        with pytest.raises(ToolError) as caught:
            await ctx.gateway.generate_text("More?")
        assert caught.value.code == code
    assert [call["prompt"] for call in model.calls] == ["Weather?", "Count.", "More?", "More?"]


async def test_tools_requests_logs_and_progress_are_the_tests() -> None:
    async def look(args: dict[str, Any]) -> Any:
        return {"at": args["at"]}

    data = TestData()
    ctx = function_context(data, tools={"look": look}, requests={"https://a.example": {"text": "yes"}})
    assert await ctx.tools.call("look", {"at": "door"}) == {"at": "door"}
    assert ctx.utils is not None
    assert (await ctx.utils.fetch_with_retry("https://a.example")).text == "yes"
    with pytest.raises(ToolError):
        await ctx.utils.fetch_with_retry("https://b.example")
    ctx.logger.info("it begins", n=1)
    await ctx.progress.report("half", fraction=0.5)
    assert data.logs == [{"level": "info", "message": "it begins", "fields": {"n": 1}}]
    assert data.progress == [{"message": "half", "fraction": 0.5}]


def test_random_numbers_are_those_of_the_seed() -> None:
    assert seeded_random("a").int(0, 1_000) == function_context(seed="a").random.int(0, 1_000)
    assert tool_context(seed="b").random.int(0, 1_000) == seeded_random("b").int(0, 1_000)


async def test_a_tools_writes_commit_or_drop_with_its_call() -> None:
    data = TestData()
    assert await execute_tool_and_commit(register, "keep", {"text": "a"}, data=data) == {"kept": "a"}
    assert list(data.records["notes"]) == ["a"]
    with pytest.raises(ToolError):
        await execute_tool_and_commit(register, "keep", {"text": "bad"}, data=data)
    for text, code in (("odd", Code.RUNTIME_OUTPUT), (3, Code.TOOL_VALIDATION)):
        with pytest.raises(TurnwrightError) as caught:
            await execute_tool_and_commit(register, "keep", {"text": text}, data=data)
        assert caught.value.code == code
    with pytest.raises(TurnwrightError) as unknown:
        await execute_tool_and_commit(register, "lose", {}, data=data)
    assert (unknown.value.code, unknown.value.accepted) == (Code.TOOL_UNKNOWN, "keep")
    assert (list(data.records["notes"]), data.staged) == (["a"], [])


async def test_a_service_is_called_with_both_schemas_checked() -> None:
    data = TestData()
    cheap, dear = {"item": "rope", "cost": 1}, {"item": "boat", "cost": 9}
    assert await call_test_service(register, "stock.price@1", cheap) == {"item": "rope"}
    with pytest.raises(ToolError, match="read service"):
        await call_test_service(register, "stock.price@1", dear, data=data)
    await call_test_service(register, "stock.change@1", dear, data=data)
    assert data.records == {"purse": {"coins": 9}}
    for item, cost, code in (("x", None, Code.TOOL_VALIDATION), ("nothing", 1, Code.RUNTIME_OUTPUT)):
        with pytest.raises(TurnwrightError) as caught:
            await call_test_service(register, "stock.price@1", {"item": item, "cost": cost})
        assert caught.value.code == code
    with pytest.raises(TurnwrightError, match="no service answers"):
        await call_test_service(register, "stock.sell@1", cheap)


@pytest.mark.slow
async def test_a_session_of_a_package_is_played_on_the_real_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with play_package(DICE, beside=["chronicle"]) as session:
        result = await session.play("I roll.", replies={"chronicle/story": ["It comes to rest."]})
        assert result.story is not None
        assert result.story.text == "It comes to rest."
        assert [topic for topic, _ in await session.events()] == ["dice.rolled"]
        assert {call["runtime"] for call in await session.asked()} == {"chronicle/story"}


def test_every_public_name_is_there_and_documented() -> None:
    assert all(getattr(turnwright.testing, name).__doc__ for name in turnwright.testing.__all__)
