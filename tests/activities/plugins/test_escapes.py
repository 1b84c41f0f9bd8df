"""Code that tries to get out of its process, to hold it, or to break it.

A layer that a system does not offer is told by its name; where it is told, what it would have held is not
expected to hold.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from activities.plugins.child.code import IsolatedCode
from activities.plugins.child.confinement import ROOT
from activities.plugins.child.pool import Children
from activities.plugins.code import CodeFiles
from activities.plugins.host import invoke
from kernel.errors import Code, TurnwrightError
from kernel.policy import LAYERS
from tests.activities.plugins.conftest import isolated
from tests.activities.plugins.packages import call, fresh_digest

ATTEMPT = """
import asyncio, os, pathlib, socket, subprocess, sys, threading

def attempt(target):
{body}

async def handler(ctx):
    try:
        return {{"done": attempt(ctx.player_message)}}
    except BaseException as error:
        return {{"refused": type(error).__name__}}
"""

ATTEMPTS = {
    "reads a file of the machine": ("files", "return pathlib.Path(target).read_text()", "PermissionError"),
    "lists a folder of the machine": (
        "files",
        "return os.listdir(os.path.dirname(target))",
        "PermissionError",
    ),
    "writes beside its files": (
        "files",
        "pathlib.Path(__file__).with_name('new.py').write_text('1'); return True",
        "PermissionError",
    ),
    "reads what other processes were started with": (
        "files",
        "return pathlib.Path(f'/proc/{os.getppid()}/environ').read_bytes().decode()",
        "PermissionError",
    ),
    "opens a socket": ("system-calls", "socket.socket(); return True", "PermissionError"),
    "opens a socket to a file": (
        "system-calls",
        "socket.socket(socket.AF_UNIX).connect('/run/x'); return True",
        "PermissionError",
    ),
    "starts a program": ("system-calls", "subprocess.run(['true']); return True", "PermissionError"),
    "forks": ("system-calls", "return [os.fork() for _ in range(100)]", "PermissionError"),
    "leaves a daemon behind": (
        "system-calls",
        "pid = os.fork(); (os.setsid(), os.fork()) if pid == 0 else None; return pid",
        "PermissionError",
    ),
    "ends its worker": ("system-calls", "os.kill(os.getppid(), 0); return True", "PermissionError"),
    "takes ten gibibytes": ("limits", "return len(bytearray(10 * 2**30))", "MemoryError"),
    "writes a file without an end": (
        "limits",
        "f = os.memfd_create('x'); return [os.write(f, b'x' * 2**20) for _ in range(9)]",
        "OSError",
    ),
}


def write(folder: Path, source: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "handler.py").write_text(source)


async def loaded(children: Children, folder: Path, source: str) -> IsolatedCode:
    write(folder, source)
    files = CodeFiles("demo", handlers=("handler.py",))
    return await isolated(children, folder, files, fresh_digest(folder))


def handler(*lines: str) -> str:
    return "import asyncio, os, signal\nasync def handler(ctx):\n" + "".join(f"    {x}\n" for x in lines)


async def refusal(code: IsolatedCode, session_id: str = "s1", timeout_s: float = 5) -> TurnwrightError:
    with pytest.raises(TurnwrightError) as caught:
        await invoke(code, call(session_id=session_id), {}, timeout_s=timeout_s)
    return caught.value


@pytest.mark.parametrize("case", ATTEMPTS)
async def test_what_the_process_gave_up_is_refused_to_its_code(
    tmp_path: Path, children: Children, case: str
) -> None:
    layer, body, error = ATTEMPTS[case]
    secret = tmp_path / "other" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("the store")
    source = ATTEMPT.format(body="\n".join(f"    {line}" for line in body.split("; ")))
    code = await loaded(children, tmp_path / "package", source)
    answer = await invoke(code, call(player_message=str(secret)), {}, timeout_s=10)
    missing = code.started.missing
    assert answer == {"refused": error} or layer in missing, (answer, missing)


async def test_every_layer_is_in_force_or_named(tmp_path: Path, children: Children) -> None:
    code = await loaded(children, tmp_path, handler("return 1"))
    assert code.started.missing.keys() <= LAYERS.keys()
    assert (code.started.level == "sealed") == (not code.started.missing)


async def test_the_environment_of_the_worker_stays_there(
    tmp_path: Path, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    code = await loaded(children, tmp_path, handler("return sorted(os.environ)"))
    assert "SOME_API_KEY" not in await invoke(code, call(), {}, timeout_s=5)


async def test_a_session_sees_nothing_of_another(tmp_path: Path, children: Children) -> None:
    source = "SEEN = []\nasync def handler(ctx):\n    SEEN.append(ctx.session_id)\n    return SEEN\n"
    code = await loaded(children, tmp_path, source)
    for session_id in ("s1", "s2"):
        assert await invoke(code, call(session_id=session_id), {}, timeout_s=5) == [session_id]
    assert await invoke(code, call(session_id="s1"), {}, timeout_s=5) == ["s1", "s1"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("os._exit(3)", "ended with status 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9"),
        ("[os.write(fd, b'junk' * 2**19) for fd in range(3, 12) if is_pipe(fd)]", "wrote into the channel"),
        ("[os.write(fd, b'x\\n') for fd in range(3, 12) if is_pipe(fd)]", "wrote into the channel"),
    ],
)
async def test_a_process_that_ends_fails_its_run_and_nobody_elses(
    tmp_path: Path, children: Children, line: str, said: str
) -> None:
    source = f"""
    import asyncio, os, signal, stat
    def is_pipe(fd):
        try:
            os.write(fd, b"")
            return not stat.S_ISREG(os.fstat(fd).st_mode)
        except OSError:
            return False
    async def handler(ctx):
        if ctx.session_id == "s1":
            {line}
            await asyncio.Event().wait()
        return await ctx.state.get("/mood")
    """
    code = await loaded(children, tmp_path, dedent(source))
    asked, answer = asyncio.Event(), asyncio.Event()

    async def state(params: dict[str, Any]) -> str:
        asked.set()
        await answer.wait()
        return "calm"

    other = asyncio.create_task(invoke(code, call(session_id="s2"), {"state.get": state}, timeout_s=20))
    await asked.wait()
    error = await refusal(code)
    assert error.code == Code.RUNTIME_FAILED
    assert said in error.message
    answer.set()
    assert await other == "calm"


@pytest.mark.parametrize("line", ["    while True: pass", "    __import__('time').sleep(600)"])
async def test_code_that_holds_the_interpreter_is_ended_and_the_next_call_gets_a_new_process(
    tmp_path: Path, children: Children, line: str
) -> None:
    code = await loaded(children, tmp_path, handler("if ctx.player_message:", line, "return os.getpid()"))
    first = await invoke(code, call(player_message=None), {}, timeout_s=10)
    assert (await refusal(code, timeout_s=0.2)).code == Code.RUNTIME_TIMEOUT
    assert await invoke(code, call(player_message=None), {}, timeout_s=10) != first
    await gone(first)


async def test_many_calls_of_one_process_are_answered_each(tmp_path: Path, children: Children) -> None:
    code = await loaded(children, tmp_path, handler("return await ctx.state.get(ctx.player_message)"))

    async def state(params: dict[str, Any]) -> str:
        return str(params["path"])

    paths = [f"/{n}" for n in range(40)]
    runs = [invoke(code, call(player_message=path), {"state.get": state}, timeout_s=20) for path in paths]
    assert await asyncio.gather(*runs) == paths


async def test_more_than_a_pool_holds_takes_turns(tmp_path: Path) -> None:
    children = Children(most=2)
    code = await loaded(children, tmp_path, handler("return os.getpid()"))
    sessions = ["s1", "s2", "s3", "s1"]
    pids = [await invoke(code, call(session_id=session), {}, timeout_s=10) for session in sessions]
    await children.close()
    assert len(set(pids)) == 4  # the first had to go for the third
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_an_idle_process_ends(tmp_path: Path) -> None:
    children = Children(idle_s=0.05)
    code = await loaded(children, tmp_path, handler("return os.getpid()"))
    await gone(await invoke(code, call(), {}, timeout_s=10))
    await children.close()


async def test_clean_up_runs_last_first_when_a_version_is_let_go(tmp_path: Path, children: Children) -> None:
    (tmp_path / "server").mkdir()
    (tmp_path / "server/__init__.py").write_text(
        "def register(host):\n"
        "    host.on_dispose(lambda: print('first', flush=True))\n"
        "    async def second():\n        print('second', flush=True)\n"
        "    host.on_dispose(second)\n"
    )
    files = CodeFiles("demo", entry="server/__init__.py")
    code = await isolated(children, tmp_path, files, fresh_digest(tmp_path))
    channel = await code.connect("s1")
    child = channel.child
    await channel.close(0)
    await child.stop()
    assert child.printed.split() == ["second", "first"]


async def test_a_worker_that_is_killed_takes_its_processes_with_it(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(handler("return os.getpid()"))
    worker = f"""
    import asyncio, sys
    sys.path.insert(0, {str(ROOT)!r})
    from pathlib import Path
    from activities.plugins.child.pool import Children
    from activities.plugins.code import CodeFiles
    from activities.plugins.host import invoke
    from tests.activities.plugins.conftest import isolated
    from tests.activities.plugins.packages import call
    async def main():
        files = CodeFiles("demo", handlers=("handler.py",))
        code = await isolated(Children(), Path({str(tmp_path)!r}), files, "sha256:0")
        print(await invoke(code, call(), {{}}, timeout_s=10), flush=True)
        await asyncio.Event().wait()
    asyncio.run(main())
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", dedent(worker), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    process.kill()
    await process.wait()
    await gone(pid)


async def gone(pid: int) -> None:
    """Wait until a process has ended; it may take a moment from its killing."""
    async with asyncio.timeout(20):
        while _runs(pid):
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    """Whether a process is there and no mere entry that nobody has collected."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
