"""Catalogue B: ids and names of calls."""

from __future__ import annotations

import json
import re

import pytest

from activities.models import Endpoint, OpenAIChat, close_shared_transport
from activities.models.tool_names import ToolNames
from kernel.agent.calls import JudgedCall, judge_calls
from kernel.agent.messages import Message, ModelReply, ModelRequest, ToolCall, ToolName, ToolSpec
from kernel.errors import Code
from tests.support.model_server import Call, ModelServer, Reply

SPECS = [ToolSpec(name="grep"), ToolSpec(name="get_weather")]


def judge(*ids: str, name: str = "grep", step: int = 0) -> tuple[JudgedCall, ...]:
    calls = tuple(ToolCall(id=id_, name=name, arguments=f'{{"n": {n}}}') for n, id_ in enumerate(ids))
    return judge_calls(ModelReply(tool_calls=calls), SPECS, run_id="run", step=step, may_be_truncated=False)


async def ask(server: ModelServer, **request: object) -> ModelReply:
    asked = ModelRequest.model_validate(
        {"model": "m", "messages": (Message(role="user", text="go"),), "tools": tuple(SPECS), **request}
    )
    try:
        return await OpenAIChat().stream(
            asked, Endpoint(server.url), idempotency_key="k", on_event=lambda event: None
        )
    finally:
        await close_shared_transport()


def test_b1_parallel_calls_with_one_id() -> None:
    first, second = judge("grep:3", "grep:3")
    assert first.id != second.id
    assert (first.arguments, second.arguments) == ({"n": 0}, {"n": 1})
    assert first.error is second.error is None


@pytest.mark.parametrize("ids", [("", ""), ("", "x", ""), ("dup", "dup", "dup")])
def test_b2_ids_are_unique_and_the_same_on_replay(ids: tuple[str, ...]) -> None:
    made = [call.id for call in judge(*ids)]
    assert len(set(made)) == len(ids)
    assert made == [call.id for call in judge(*ids)]


def test_b2_the_same_id_in_two_steps() -> None:
    assert judge("grep:3", step=0)[0].id != judge("grep:3", step=1)[0].id


async def test_b4_null_id_after_the_first_call() -> None:
    calls = [
        Call(name="grep", id="a", arguments='{"n": 0}'),
        Call(name="grep", id=None, arguments='{"n": 1}'),
    ]
    async with ModelServer([Reply(tool_calls=calls)]) as server:
        reply = await ask(server)
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [("a", '{"n": 0}'), ("", '{"n": 1}')]


def fragment(function: dict[str, str]) -> bytes:
    chunk = {"choices": [{"delta": {"tool_calls": [{"function": function}]}}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


INDEXLESS = (
    fragment({"name": "grep", "arguments": '{"n": 0}'})
    + fragment({"name": "grep", "arguments": '{"n"'})
    + fragment({"arguments": ": 1}"})
    + b'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
)


async def test_b5_parallel_calls_without_id_and_index_stay_apart() -> None:
    async with ModelServer([Reply(raw=INDEXLESS)]) as server:
        reply = await ask(server)
    assert [call.arguments for call in reply.tool_calls] == ['{"n": 0}', '{"n": 1}']


async def test_b5_parallel_calls_that_all_have_index_zero_stay_apart() -> None:
    raw = INDEXLESS.replace(b'{"function"', b'{"index": 0, "function"')
    async with ModelServer([Reply(raw=raw)]) as server:
        reply = await ask(server)
    assert [call.arguments for call in reply.tool_calls] == ['{"n": 0}', '{"n": 1}']


async def test_b5_a_name_repeated_in_every_chunk_is_one_call() -> None:
    raw = INDEXLESS.split(b"\n\n", 1)[1].replace(
        b'{"arguments":": 1}"}', b'{"name":"grep","arguments":": 1}"}'
    )
    async with ModelServer([Reply(raw=raw)]) as server:
        reply = await ask(server)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("grep", '{"n": 1}')]


def test_b6_two_calls_of_one_tool() -> None:
    first, second = judge("get_weather", "get_weather", name="get_weather")
    assert first.id != second.id


@pytest.mark.parametrize(
    ("called", "offered", "meant"),
    [
        ("search_files", "mcp__x__search_files", "mcp__x__search_files"),
        ("default_api.search_files", "search_files", "search_files"),
        ("serch_files", "search_files", "search_files"),
        ("Search-Files", "search_files", "search_files"),
    ],
)
def test_b8_unknown_tool_did_you_mean(called: str, offered: str, meant: str) -> None:
    reply = ModelReply(tool_calls=(ToolCall(name=called, arguments="{}"),))
    (call,) = judge_calls(reply, [ToolSpec(name=offered)], run_id="r", step=0, may_be_truncated=False)
    assert call.error is not None
    assert call.error.code == Code.TOOL_UNKNOWN
    assert f"Did you mean `{meant}`?" in call.error.message


def test_b8_a_call_without_a_name() -> None:
    reply = ModelReply(tool_calls=(ToolCall(name="", arguments="{}"),))
    (call,) = judge_calls(reply, SPECS, run_id="r", step=0, may_be_truncated=False)
    assert call.error is not None
    assert "names no tool" in call.error.message


ODD_NAMES = [
    "admin.tools.list",
    "do it",
    "admin_tools_list",
    "admin/tools/list",
    "x" * 70,
    "x" * 71,
    "größe",
    ".",
]


def test_b13_names_map_both_ways() -> None:
    names = ToolNames(ODD_NAMES)
    safe = [names.safe(name) for name in ODD_NAMES]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in safe)
    assert len(set(safe)) == len(ODD_NAMES)
    assert [names.original(one) for one in safe] == ODD_NAMES
    assert names.safe("admin_tools_list") == "admin_tools_list"
    assert [ToolNames(reversed(ODD_NAMES)).safe(name) for name in ODD_NAMES] == safe


async def test_b13_odd_names_on_the_wire() -> None:
    tools = tuple(ToolSpec(name=name) for name in ODD_NAMES)
    safe = ToolNames(ODD_NAMES).safe("do it")
    async with ModelServer([Reply(tool_calls=[Call(name=safe, id="1")])]) as server:
        reply = await ask(server, tools=tools, tool_choice=ToolName(name="do it"))
        body = server.calls[0].body
    assert reply.tool_calls[0].name == "do it"
    assert body["tool_choice"]["function"]["name"] == safe
    assert len({tool["function"]["name"] for tool in body["tools"]}) == len(ODD_NAMES)
