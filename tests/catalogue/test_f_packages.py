"""Catalogue F, the cases about package code, secrets and live text."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from activities.models.slots import load_slots
from activities.plugins.loader import CodeFiles, load_code
from kernel.errors import Code, TurnwrightError
from link.settings import load_settings
from store.engine import Store
from store.migrate import upgrade
from store.stream import StreamWriter, finish, follow, forget
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.packages import function, story_with
from tests.support.rig import rig, write_packages

TOOL = (
    "def register(host):\n"
    "    async def mark(args, ctx):\n"
    "        return {'by': 'NAME'}\n\n"
    "    host.register_tool(name='NAME', description='Marks.', parameters={'type': 'object'}, handler=mark)\n"
)


def marker(name: str) -> dict[str, str]:
    """A story whose one tool has this name."""
    return dict(story_with(f"{{ plugin: [{name}] }}", TOOL.replace("NAME", name), f"  tools: [{name}]\n"))


@pytest.mark.slow
async def test_f4_a_slow_start_of_a_function_is_no_dead_worker(tmp_path: Path) -> None:
    """Heartbeats come from the first line: longer than the heartbeat time-out, and still one attempt."""
    body = (
        "import pathlib\n"
        f"file = pathlib.Path({str(tmp_path / 'attempts')!r})\n"
        "file.write_text(file.read_text() + 'x' if file.exists() else 'x')\n"
        "await asyncio.sleep(6)\n"
        'return {"outcome": "success"}'
    )
    async with rig(tmp_path, packages={"slow": function(body)}) as r:
        session = await r.session(packages=["slow"])
        result = await session.play("Go.", timeout_s=60)
    assert result["runs"] == [{"runtime_id": "slow", "status": "success"}]
    assert (tmp_path / "attempts").read_text() == "x"


def test_f10_a_lazy_import_of_what_is_not_there_is_refused_at_load(tmp_path: Path) -> None:
    handler = "async def handler(ctx):\n    import not_installed_anywhere\n    return {}\n"
    write_packages(tmp_path, {"lazy": {"handler.py": handler}})
    with pytest.raises(TurnwrightError) as refused:
        load_code(tmp_path / "lazy", CodeFiles("lazy", handlers=("handler.py",)), digest="sha256:f10")
    assert refused.value.code == Code.PACKAGE_LOAD
    assert "not_installed_anywhere" in str(refused.value)


def test_f12_a_secret_is_a_name_and_its_value_goes_nowhere(tmp_path: Path) -> None:
    config = tmp_path / "turnwright.toml"
    config.write_text(
        '[slots.story]\nbase_url = "https://models.test/v1"\nmodel = "m"\napi_key_env = "STORY_KEY"\n'
        '[encryption]\nkey_env = "PAYLOAD_KEY"\n'
    )
    secrets = {"STORY_KEY": "sk-very-secret", "PAYLOAD_KEY": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTMyISE="}
    settings = load_settings({"TURNWRIGHT_CONFIG": str(config), **secrets}, cwd=tmp_path)
    slot = load_slots(settings.slots)["story"]
    reloaded = load_settings({**settings.to_env(), **secrets}, cwd=tmp_path)
    assert reloaded == settings
    endpoint = slot.endpoint(secrets)
    assert endpoint.api_key == "sk-very-secret"
    for shown in (
        repr(settings),
        repr(slot),
        slot.model_dump_json(),
        repr(endpoint),
        json.dumps(settings.to_env()),
    ):
        assert not any(value in shown for value in secrets.values())
        assert "**" not in shown


@pytest.mark.slow
async def test_f13_a_run_in_flight_keeps_the_tool_that_was_renamed(tmp_path: Path) -> None:
    script = [
        Reply(tool_calls=(Call(name="mark-old", arguments="{}"),), hold=True),
        Reply(text="Marked."),
        Reply(tool_calls=(Call(name="mark-new", arguments="{}"),)),
        Reply(text="Marked anew."),
    ]
    async with rig(tmp_path, packages={"tale": marker("mark-old")}, model=ModelServer(script)) as r:
        session = await r.session(packages=["tale"])
        receipt = await session.submit("Mark it.")
        await r.model.held.wait()
        write_packages(tmp_path / "packages", {"tale": marker("mark-new")})
        revision = (await session.update("configure", {"packages": ["tale"]}))["revision"]
        r.model.release()
        assert (await session.result(receipt))["status"] == "committed"
        await session.until(lambda state: state["revision"] == revision)
        assert (await session.play("Mark it again."))["status"] == "committed"
    answers = [
        call.body["messages"][-1]["content"]
        for call in r.model.calls
        if call.body["messages"][-1]["role"] == "tool"
    ]
    assert [json.loads(answer) for answer in answers] == [{"by": "mark-old"}, {"by": "mark-new"}]


async def test_f21_a_reader_that_is_parked_never_misses_a_piece_unmarked(tmp_path: Path) -> None:
    """Whatever a new attempt takes back is taken back by an explicit `reset`."""
    url = f"sqlite:///{tmp_path}/store.db"
    await upgrade(url)
    store = await Store.open(url)
    seen: list[tuple[str, str]] = []

    async def read() -> None:
        async for piece in follow(store, "t"):
            seen.append((piece.kind, piece.text))

    reader = asyncio.create_task(read())
    for attempt, text in ((1, "one"), (2, "two")):
        async with StreamWriter(store, "t", "tale", attempt) as writer:
            writer.add("text", text)
    async with store.write() as conn:
        await finish(conn, "t")
    await asyncio.wait_for(reader, 10)
    assert seen in ([("text", "one"), ("reset", ""), ("text", "two")], [("reset", ""), ("text", "two")])
    async with store.write() as conn:
        await forget(conn, "t")
    await store.close()
