"""The development server, connecting to it, and its search attributes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest, RemoveSearchAttributesRequest

from kernel.errors import Code, TurnwrightError
from kernel.wire import names
from link.attributes import creation_command, ensure_attributes
from link.connect import connect, identity
from link.dev_server import start_dev_server
from link.following import following
from link.settings import Settings, load_settings
from link.tuning import dynamic_config_flags
from tests.support.temporal import link_settings, time_skipping_environment

pytestmark = pytest.mark.slow


def settings_at(address: str, home: Path, **environ: str) -> Settings:
    return load_settings({"TURNWRIGHT_ADDRESS": address, "TURNWRIGHT_HOME": str(home), **environ}, cwd=home)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if sys.platform == "linux" else True


async def gone(pid: int) -> bool:
    for _ in range(100):
        if not alive(pid):
            return True
        await asyncio.sleep(0.05)
    return False


def test_tuning_file_has_a_reason_for_every_value() -> None:
    file = Path(__file__).parents[2] / "deploy" / "dynamic-config.yaml"
    lines = file.read_text().splitlines()
    keys = [
        number for number, line in enumerate(lines) if line.endswith(":") and not line.startswith(("#", " "))
    ]
    assert len(keys) == len(yaml.safe_load(file.read_text()))
    assert all(lines[number - 1].startswith("# ") for number in keys)
    assert 'history.timerProcessorMaxTimeShift="50ms"' in dynamic_config_flags()


async def test_server_keeps_its_database_and_leaves_no_process(tmp_path: Path) -> None:
    async with await start_dev_server(tmp_path, ui=False) as server:
        client = await connect(settings_at(server.address, tmp_path))
        await client.start_workflow("Later", id="kept", task_queue="nobody")
    assert not alive(server.pid)
    await server.close()
    async with await start_dev_server(tmp_path) as again:
        client = await connect(settings_at(again.address, tmp_path))
        assert (await client.get_workflow_handle("kept").describe()).workflow_type == "Later"
        assert again.ui_url is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", int(again.ui_url.rpartition(":")[2]))
        writer.close()
        assert reader
    assert not alive(again.pid)


async def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    async with await start_dev_server(tmp_path, ui=False):
        with pytest.raises(TurnwrightError, match="another development server") as caught:
            await start_dev_server(tmp_path, ui=False)
        assert caught.value.code == Code.SERVER_START_FAILED
        assert "turnwright dev --stop" in (caught.value.accepted or "")


async def test_taken_port_is_told_with_the_log(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(TurnwrightError, match="address already in use") as caught:
            await start_dev_server(tmp_path, port=taken.getsockname()[1], ui=False)
    assert caught.value.code == Code.SERVER_START_FAILED
    async with await start_dev_server(tmp_path, ui=False) as server:
        assert server.address


async def test_server_dies_with_a_killed_parent(tmp_path: Path) -> None:
    if sys.platform != "linux":  # no such promise is made there
        assert following(["server"]) == ["server"]
        return
    script = (
        "import asyncio, pathlib, sys\n"
        "from link.dev_server import start_dev_server\n"
        "async def main():\n"
        "    server = await start_dev_server(pathlib.Path(sys.argv[1]), ui=False, in_memory=True)\n"
        "    print(server.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout
    server = int(await parent.stdout.readline())
    assert alive(server)
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    assert await gone(server)


async def test_unreachable_server_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(TurnwrightError) as caught:
        await connect(settings_at("127.0.0.1:1", tmp_path))
    assert (caught.value.code, caught.value.where) == (Code.SERVER_UNREACHABLE, "127.0.0.1:1")


async def test_silent_server_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("link.connect.CONNECT_S", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TurnwrightError) as caught:
            await connect(settings_at(address, tmp_path))
    assert (caught.value.code, caught.value.where) == (Code.SERVER_UNREACHABLE, address)
    assert "no answer within 0.5 s" in caught.value.message


async def test_missing_namespace_is_named(tmp_path: Path) -> None:
    settings = link_settings(tmp_path, TURNWRIGHT_NAMESPACE="nowhere")
    with pytest.raises(TurnwrightError, match="no namespace 'nowhere'") as caught:
        await connect(settings)
    assert "namespace create" in caught.value.accepted


async def test_missing_api_key_is_refused_before_connecting(tmp_path: Path) -> None:
    settings = link_settings(tmp_path, TURNWRIGHT_API_KEY_ENV="NO_SUCH_VARIABLE")
    with pytest.raises(TurnwrightError) as caught:
        await connect(settings)
    assert (caught.value.code, caught.value.where) == (Code.CONFIG_INVALID, "NO_SUCH_VARIABLE")


def test_identity_is_short() -> None:
    assert identity().startswith(f"{os.getpid()}@")
    assert len(identity()) <= 30


async def test_attributes_are_registered_where_they_are_missing(tmp_path: Path) -> None:
    async with await start_dev_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(settings_at(server.address, tmp_path))
        removed = RemoveSearchAttributesRequest(
            namespace="default", search_attributes=[names.ATTRIBUTE_TURN, names.ATTRIBUTE_STATUS]
        )
        await client.operator_service.remove_search_attributes(removed)
        await ensure_attributes(client)
        await ensure_attributes(client)
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace="default")
        )
        assert set(names.ATTRIBUTES) <= set(listed.custom_attributes)


async def test_attribute_of_another_type_is_refused_with_the_command(tmp_path: Path) -> None:
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest

    async with await start_dev_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(settings_at(server.address, tmp_path))
        name = names.ATTRIBUTE_TURN
        await client.operator_service.remove_search_attributes(
            RemoveSearchAttributesRequest(namespace="default", search_attributes=[name])
        )
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace="default", search_attributes={name: IndexedValueType.INDEXED_VALUE_TYPE_INT}
            )
        )
        with pytest.raises(TurnwrightError) as caught:
            await ensure_attributes(client)
        assert caught.value.code == Code.SERVER_ATTRIBUTES
        assert caught.value.accepted == creation_command("default")
        assert f"--name {name} --type Keyword" in caught.value.accepted


async def test_time_skipping_server_skips() -> None:
    async with time_skipping_environment() as environment:
        begin = await environment.get_current_time()
        await environment.sleep(3_600)
        assert (await environment.get_current_time() - begin).total_seconds() >= 3_600
