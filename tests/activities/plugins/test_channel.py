from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from activities.plugins.host import invoke
from kernel.errors import Code, TurnwrightError
from kernel.wire.host import MAX_MESSAGE_BYTES, HostCall, NotJson, clean, decode, encode, newest_within
from tests.activities.plugins.packages import STATIC, answers, call, load

pytestmark = pytest.mark.usefixtures("transport")


async def run(tmp_path: Path, body: str, methods: dict[str, Any] | None = None, **context: Any) -> Any:
    code = load(tmp_path, {"handler.py": f"async def handler(ctx):\n    {body}\n"})
    return await invoke(code, call(**context), methods or {}, timeout_s=2)


async def test_code_cannot_change_what_it_was_given(tmp_path: Path) -> None:
    inputs = {"narrative": {"value": ["kept"]}}
    result = await run(
        tmp_path, "ctx.inputs['narrative']['value'].append('mine'); return ctx.inputs", inputs=inputs
    )
    assert result["narrative"]["value"] == ["kept", "mine"]
    assert inputs == {"narrative": {"value": ["kept"]}}


async def test_code_cannot_change_what_the_host_answered(tmp_path: Path) -> None:
    stored = {"list": [1]}
    body = "value = await ctx.plugin_data.get('n', 'k'); value['list'].append(2); return value"
    result = await run(tmp_path, body, {"plugin_data.get": answers(stored)})
    assert (result, stored) == ({"list": [1, 2]}, {"list": [1]})


async def test_a_result_shares_nothing_with_the_code(tmp_path: Path) -> None:
    code = load(tmp_path, {"handler.py": "KEPT = []\nasync def handler(ctx):\n    return KEPT\n"})
    (await invoke(code, call(), {}, timeout_s=1)).append("host")
    assert await invoke(code, call(), {}, timeout_s=1) == []


async def test_the_context_holds_what_the_host_sent(tmp_path: Path) -> None:
    body = """return [ctx.plugin_id, ctx.logical_turn, ctx.player_message, ctx.now.isoformat(),
        ctx.messages[0]['text'], ctx.inputs['narrative']['value'][0]['text'],
        ctx.gateway, ctx.utils, ctx.agents, ctx.signal.aborted]"""
    assert await run(tmp_path, body) == [
        *("demo", 3, "I knock.", "2023-11-14T22:13:20+00:00", "I knock.", "Rain."),
        *(None, None, None, False),
    ]


async def test_a_lone_surrogate_becomes_the_replacement_character(tmp_path: Path) -> None:
    assert await run(tmp_path, r"return {'ok \udc00': 'end \ud800', 'pair': '\ud83d\ude00'}") == {
        "ok \ufffd": "end \ufffd",
        "pair": "\U0001f600",
    }


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("{'a': [1, object()]}", "/a/1: object is not JSON"),
        ("{'a': {1: 2}}", "/a: the key 1 is not a string"),
        ("[float('nan')]", "/0: nan is not a JSON number"),
        ("{'a/b': {3}}", "/a~1b: set is not JSON"),
        ("10 ** 20", "the value: the integer is beyond 2^53 - 1"),
        ("b'x'", "the value: bytes is not JSON"),
        ("'x' * 2_000_000", "larger than 1048576 bytes"),
    ],
)
async def test_a_result_that_is_no_json_is_refused_with_its_path(
    tmp_path: Path, expression: str, said: str
) -> None:
    with pytest.raises(TurnwrightError) as caught:
        await run(tmp_path, f"return {expression}")
    assert caught.value.code == Code.RUNTIME_OUTPUT
    assert said in caught.value.message


def test_a_circle_and_a_value_that_unfolds_are_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    unfolding: list[Any] = ["x" * 100]
    for _ in range(50):
        unfolding = [unfolding, unfolding]
    for value in (circle, unfolding):
        with pytest.raises(NotJson):
            clean(value)


async def test_arguments_that_are_no_json_are_refused_where_the_code_asks(tmp_path: Path) -> None:
    body = """
    from turnwright.sdk import ToolError
    try:
        await ctx.plugin_data.set('n', 'k', {'at': ctx.now})
    except ToolError as error:
        return [error.code, error.message]
    """
    code, message = await run(tmp_path, body.replace("\n    ", "\n    ").strip())
    assert (code, message) == ("wire.malformed", "plugin_data.set: /value/at: datetime is not JSON")


async def test_an_answer_past_the_size_of_a_message_is_an_error_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(TurnwrightError) as caught:
        await run(
            tmp_path, "return await ctx.plugin_data.get('n', 'k')", {"plugin_data.get": answers("x" * 2**21)}
        )
    assert caught.value.code == Code.WIRE_TOO_LARGE


def test_messages_are_read_as_they_were_written() -> None:
    message = HostCall(id=7, method="log", params={"text": "a\u2028b"})
    assert decode(encode(message)) == message
    invocation = call()
    assert decode(encode(invocation)) == invocation
    assert invocation.context == STATIC


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", Code.WIRE_MALFORMED),
        ('{"type":"other"}', Code.WIRE_MALFORMED),
        ('{"type":"call","method":"log","params":{"x":NaN}}', Code.WIRE_MALFORMED),
        ('{"type":"done","result":' + "[" * 200 + "]" * 200 + "}", Code.WIRE_MALFORMED),
        ('{"type":"done","result":' + "[" * 100_000 + "]" * 100_000 + "}", Code.WIRE_MALFORMED),
        ("x" * (MAX_MESSAGE_BYTES + 1), Code.WIRE_TOO_LARGE),
    ],
)
def test_a_text_that_is_no_message_is_refused(text: str, code: Code) -> None:
    with pytest.raises(TurnwrightError) as caught:
        decode(text)
    assert caught.value.code == code


def test_the_newest_messages_are_kept() -> None:
    messages = [{"role": "user", "text": "x" * 90} for _ in range(9)] + [{"role": "user", "text": "last"}]
    kept = newest_within(messages, 300)
    assert 1 < len(kept) < 10
    assert kept[-1]["text"] == "last"
