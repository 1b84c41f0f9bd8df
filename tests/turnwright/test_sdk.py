from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from kernel.errors import Code, TurnwrightError
from turnwright.sdk import (
    CharacterReply,
    Gateway,
    Host,
    HttpResponse,
    Narrative,
    Network,
    Operations,
    PluginData,
    SceneCast,
    Segment,
    Signal,
    ToolError,
    TurnDigest,
    TurnPolicy,
    contract_schema,
    instruction_locale_for,
)


class Recorder:
    """Answers every call, and keeps what was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answer = answer

    async def __call__(self, method: str, params: dict[str, Any]) -> Any:
        self.calls.append((method, params))
        return self.answer


async def nothing(args: Any, ctx: Any) -> None:
    """A tool that does nothing."""


class Args(BaseModel):
    name: str


async def test_calls_carry_only_what_was_given_in_camel_case() -> None:
    call = Recorder()
    await PluginData(call).list("facts", after="a", limit=5)
    await Gateway(call).generate_text("Hi", preset_id="memory", max_output_tokens=9)
    await Gateway(call).generate_object(messages=[{"role": "user", "content": "x"}], schema=Args)
    assert call.calls == [
        ("plugin_data.list", {"namespace": "facts", "after": "a", "limit": 5}),
        ("gateway.generate_text", {"prompt": "Hi", "presetId": "memory", "maxOutputTokens": 9}),
        (
            "gateway.generate_object",
            {"messages": [{"role": "user", "content": "x"}], "schema": Args.model_json_schema()},
        ),
    ]


async def test_a_request_has_a_prompt_or_messages() -> None:
    for given in ({}, {"prompt": "x", "messages": []}):
        with pytest.raises(ToolError) as caught:
            await Gateway(Recorder()).generate_text(**given)  # type: ignore[arg-type]
        assert caught.value.code == "invalid-request"


async def test_a_response_is_typed() -> None:
    call = Recorder({"status": 204, "headers": {}, "text": ""})
    response = await Network(call).fetch_with_retry("https://example.com", timeout_ms=10)
    assert response == HttpResponse(204, {}, "")
    assert response.ok
    assert call.calls[0][1]["timeoutMs"] == 10


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://user:pw@example.com",
        "https://localhost",
        "https://printer.local",
        "https://intranet",
        "https://127.0.0.1",
        "https://10.1.2.3/x",
        "https://169.254.169.254",
        "https://100.64.0.1",
        "https://[::1]",
        "https://[::ffff:127.0.0.1]",
        "https://2130706433",
        "https://0x7f.1",
        "https://224.0.0.1",
        "https://[",
        "https://example.com:99999",
        "",
    ],
)
def test_a_base_url_that_is_not_public_https_is_refused(url: str) -> None:
    with pytest.raises(ToolError) as caught:
        Network(Recorder()).validate_base_url(url)
    assert caught.value.code == "invalid-url"


@pytest.mark.parametrize(
    "url", ["https://api.example.com", "https://api.example.com:8443/v1/", "https://1.1.1.1"]
)
def test_a_public_base_url_is_kept(url: str) -> None:
    assert Network(Recorder()).validate_base_url(url) == url.rstrip("/")


def test_a_stopped_run_ends_where_it_asks() -> None:
    signal = Signal()
    signal.throw_if_aborted()
    signal.abort()
    with pytest.raises(asyncio.CancelledError):
        signal.throw_if_aborted()


def test_a_tool_keeps_its_model_and_the_schema_of_it() -> None:
    host = Host("demo")
    host.register_tool(name="greet", description="Greets.", parameters=Args, handler=nothing, output=Args)
    tool = host.registered.tools["greet"]
    assert (tool.model, tool.risk, tool.needs_approval) == (Args, "read", False)
    assert tool.parameters == tool.output == Args.model_json_schema()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": " "}, "not usable"),
        ({"name": "x" * 129}, "not usable"),
        ({"description": ""}, "description is empty"),
        ({"parameters": {"type": "string"}}, "no object schema"),
        ({"parameters": None}, "no object schema"),
        ({"parameters": {"type": "object", "anyOf": [{}]}}, "has anyOf at its root"),
        ({"risk": "huge"}, "unknown risk 'huge'"),
        ({"handler": print}, "not async"),
    ],
)
def test_a_tool_that_cannot_be_called_is_refused(change: dict[str, Any], said: str) -> None:
    tool = {"name": "t", "description": "d", "parameters": {"type": "object"}, "handler": nothing, **change}
    with pytest.raises(TurnwrightError) as caught:
        Host("demo").register_tool(**tool)
    assert caught.value.code == Code.PACKAGE_LOAD
    assert said in caught.value.message


def test_a_tool_is_registered_once() -> None:
    host = Host("demo")
    tool: dict[str, Any] = {"name": "t", "description": "d", "parameters": Args, "handler": nothing}
    host.register_tool(**tool)
    with pytest.raises(TurnwrightError, match="registered twice"):
        host.register_tool(**tool)


def test_a_model_of_a_contract_dumps_to_its_schema() -> None:
    story = Narrative(segments=(Segment(kind="dialogue", text="Hm.", speaker="Mara"),), yield_="user")
    dumped = story.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert dumped == {"segments": [{"kind": "dialogue", "text": "Hm.", "speaker": "Mara"}], "yield": "user"}
    schema = contract_schema("narrative-engine@2")
    assert schema is not None
    Draft202012Validator(schema).validate(dumped)
    assert contract_schema("other@1") is None


@pytest.mark.parametrize(
    ("contract", "model"),
    [
        ("narrative-engine@2", Narrative),
        ("character-actor@1", CharacterReply),
        ("turn-policy@1", TurnPolicy),
        ("scene-cast@1", SceneCast),
        ("turn-digest@1", TurnDigest),
        ("operations@1", Operations),
    ],
)
def test_model_and_schema_of_a_contract_name_the_same_fields(contract: str, model: type[BaseModel]) -> None:
    schema = contract_schema(contract)
    assert schema is not None
    assert set(model.model_json_schema(by_alias=True)["properties"]) == set(schema["properties"])


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        *(("zh", "zh"), ("zh-CN", "zh"), ("zh-Hans", "zh"), ("zh_Hans_SG", "zh")),
        *(("zh-Hant", "en"), ("zh-TW", "en"), ("en-GB", "en"), ("de", "en"), ("", "en")),
    ],
)
def test_the_instruction_language_of_a_locale(locale: str, language: str) -> None:
    assert instruction_locale_for(locale) == language
