"""The note of a running stack, child processes, and the public face."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

import turnwright.client
from client import processes, running, stack
from kernel.errors import Code, TurnwrightError
from link.child_log import MOST_BYTES, ChildLog
from link.following import following
from link.settings import Settings, load_settings


def note(pid: int, home: Path) -> running.Running:
    return running.Running(pid, "127.0.0.1:7", None, f"sqlite:///{home}/t.db", str(home / "worker.log"))


def test_other_commands_find_what_runs_under_a_home(tmp_path: Path) -> None:
    with running.announced(tmp_path, note(os.getpid(), tmp_path)):
        settings = running.found(Settings(home=tmp_path))
    assert settings.temporal.address == "127.0.0.1:7"
    assert settings.store_url == f"sqlite:///{tmp_path}/t.db"
    assert running.read(tmp_path) is None


def test_a_configured_address_is_kept(tmp_path: Path) -> None:
    environ = {"TURNWRIGHT_HOME": str(tmp_path), "TURNWRIGHT_ADDRESS": "localhost:7233"}
    with running.announced(tmp_path, note(os.getpid(), tmp_path)):
        assert running.found(load_settings(environ, cwd=tmp_path)).temporal.address == "localhost:7233"


def test_a_note_whose_writer_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    with running.announced(tmp_path, note(os.getpid(), tmp_path)):
        left = (tmp_path / running.NAME).read_text()
    (tmp_path / running.NAME).write_text(left)  # its process id is alive, and a stranger's
    assert running.read(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "null"])
def test_a_broken_note_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / running.NAME).write_text(text)
    assert running.read(tmp_path) is None


def test_the_stack_plays_on_the_stand_in_and_says_its_price(tmp_path: Path) -> None:
    local = stack.local_settings(Settings(home=tmp_path), "127.0.0.1:9", "http://127.0.0.1:8/v1")
    assert set(local.slots) == {"story", "plugin"}
    assert local.slots["story"]["model"] == "offline"
    assert local.temporal.address == "127.0.0.1:9"


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:x", "localhost:70000"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    with pytest.raises(TurnwrightError, match="host:port"):
        stack.port_of(address)


async def test_a_worker_that_cannot_start_is_told_with_the_last_lines_of_its_log(tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path, "slots": {"story": {"wire": "telegraph"}}})
    with pytest.raises(TurnwrightError) as caught:
        await processes.start_worker(settings)
    assert caught.value.code == Code.WORKER_START_FAILED
    assert "config.invalid" in caught.value.message
    assert caught.value.where == str(tmp_path / "worker.log")


async def test_a_log_is_kept_over_restarts_and_an_error_tells_of_its_own_run(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("the last words of the one before\n")
    settings = Settings.model_validate({"home": tmp_path, "slots": {"story": {"wire": "telegraph"}}})
    with pytest.raises(TurnwrightError) as caught:
        await processes.start_worker(settings)
    assert log.read_text().startswith("the last words of the one before\nerror: slots.story.wire: ")
    assert "the last words" not in caught.value.message


async def test_a_model_that_starts_again_is_found_at_its_new_address(tmp_path: Path) -> None:
    (tmp_path / "model.log").write_text("http://127.0.0.1:1/v1\n")
    model, url = await processes.start_offline_model(tmp_path)
    async with model:
        assert url != "http://127.0.0.1:1/v1"


def test_a_log_that_has_grown_is_set_aside_when_the_next_run_begins(tmp_path: Path) -> None:
    file = tmp_path / "worker.log"
    for number in (1, 2):
        file.write_bytes(b"%d" % number * (MOST_BYTES + 1))
        log = ChildLog(file)
        assert (log.text(), file.exists()) == ("", False)
        assert (tmp_path / "worker.log.1").read_bytes()[:1] == b"%d" % number
    with log.open() as out:
        out.write(b"one\ntwo\n")
    assert (log.text(), log.tail(1), ChildLog(file).text()) == ("one\ntwo\n", "two", "")


async def test_a_closed_child_is_gone(tmp_path: Path) -> None:
    model, url = await processes.start_offline_model(tmp_path)
    async with model:
        assert url.startswith("http://127.0.0.1:")
    assert model.status is not None
    with pytest.raises(ProcessLookupError):
        os.killpg(model.pid, 0)


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    command = Path(f"/proc/{pid}/cmdline")
    return command.exists() and bool(command.read_bytes())


async def test_children_die_with_their_parent(tmp_path: Path) -> None:
    """Also when it is killed: nobody is left to stop them."""
    if sys.platform != "linux":  # no such promise is made there
        assert following(["model"]) == ["model"]
        return
    code = (
        "import asyncio, sys, os, signal\n"
        "from pathlib import Path\n"
        "from client import processes\n"
        "async def main():\n"
        "    model, _ = await processes.start_offline_model(Path(sys.argv[1]))\n"
        "    print(model.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path), stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(processes.ROOT)},
    )  # fmt: skip
    out, _ = await parent.communicate()
    child = int(out)
    async with asyncio.timeout(10):
        while lives(child):
            await asyncio.sleep(0.01)


def test_the_public_face_names_what_exists() -> None:
    assert all(hasattr(turnwright.client, name) for name in turnwright.client.__all__)
    assert turnwright.client.__all__ == sorted(turnwright.client.__all__)
