"""The command line: help, usage, statuses, JSON, and what it says when things are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client import running
from client.cli import app
from client.processes import ROOT
from client.stack import free_port
from store.migrate import HEAD
from store.package_files import MAX_FILE_BYTES

COMMANDS = [
    "demo", "dev", "worker", "play", "submit", "run", "inbox", "resolve", "doctor", "migrate",
    "session new", "session list", "session show", "session pause", "session resume", "session end",
    "session set", "session packages", "turn show", "turn graph", "turn stop", "jobs list",
    "package validate", "package new", "package install", "package list", "package enable",
    "package disable", "package remove",
]  # fmt: skip
NEEDS_A_SERVER = [
    ["session", "list"],
    ["session", "new", "tale"],
    ["session", "show", "tale"],
    ["session", "packages", "tale"],
    ["submit", "tale", "I open the door."],
    ["run", "tale", "fact-index/query"],
    ["turn", "show", "t1"],
    ["turn", "graph", "t1"],
    ["turn", "stop", "t1"],
    ["inbox"],
    ["resolve", "a1", "--approve"],
    ["jobs", "list"],
]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs under this home, and nothing listens at this address."""
    monkeypatch.setenv("TURNWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TURNWRIGHT_ADDRESS", "127.0.0.1:1")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    answer = CliRunner().invoke(app, [*command.split(), "--help"])
    assert answer.exit_code == 0
    assert "Usage:" in answer.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_speaks_json(command: str) -> None:
    assert "--json" in CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "160"}).stdout


def test_unknown_command_is_a_usage_error() -> None:
    assert CliRunner().invoke(app, ["conquer"]).exit_code == 2


@pytest.mark.parametrize("arguments", NEEDS_A_SERVER, ids=" ".join)
def test_without_a_server_the_address_is_named(arguments: list[str]) -> None:
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 5
    assert answer.stdout == ""
    assert answer.stderr.startswith("error: server.unreachable: ")
    assert "where: 127.0.0.1:1" in answer.stderr


def test_an_error_is_a_document_too_where_one_is_asked_for() -> None:
    answer = CliRunner().invoke(app, ["session", "list", "--json"])
    assert answer.exit_code == 5
    error = json.loads(answer.stdout)["error"]
    assert set(error) == {"code", "message", "where", "accepted"}
    assert error["code"] == "server.unreachable"


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["resolve", "a1"], 2, "config.invalid"),
        (["resolve", "a1", "--approve", "--deny"], 2, "config.invalid"),
        (["session", "set", "tale", "--bind", "story"], 2, "config.invalid"),
        (["session", "set", "tale", "tuned"], 2, "config.invalid"),
        (["session", "packages", "tale", "--provider", "x"], 2, "config.invalid"),
        (["run", "tale", "r", "--payload", "{"], 3, "action.invalid"),
        (["dev", "--stop"], 5, "server.unreachable"),
        (["package", "validate", "nowhere"], 4, "package.unknown"),
    ],
)
def test_bad_input_is_refused_by_name_before_anything_is_sent(
    arguments: list[str], status: int, code: str
) -> None:
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == status
    assert answer.stderr.startswith(f"error: {code}: ")


def test_bad_configuration_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "turnwright.toml").write_text("[temporal]\nadress = 'x'\n")
    answer = CliRunner().invoke(app, ["session", "list"])
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: config.invalid: unknown setting (accepted: address, ")


def test_doctor_names_package_folders_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("TURNWRIGHT_PACKAGES", os.pathsep.join(["empty", "gone"]))
    report = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    missing = [found for found in report["findings"] if found["subject"] == "package folder"]
    assert [(found["state"], found["message"]) for found in missing] == [
        ("wrong", f"there is no folder {tmp_path / 'gone'}")
    ]


def test_doctor_names_what_is_missing_and_what_to_do() -> None:
    answer = CliRunner().invoke(app, ["doctor", "--json"])
    assert answer.exit_code == 1
    report = json.loads(answer.stdout)
    found = {finding["subject"]: finding for finding in report["findings"]}
    assert report["ok"] is False
    assert found["packages"]["message"] == "chronicle, dice, fact-index"
    for subject in ("server", "store", "models"):
        assert found[subject]["state"] == "wrong"
        assert found[subject]["what_to_do"]


def test_doctor_tells_that_the_database_was_removed_under_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNWRIGHT_ADDRESS")
    home, file = tmp_path / "home", tmp_path / "home/turnwright.db"
    home.mkdir()
    with running.announced(home, running.Running(7, "127.0.0.1:1", None, f"sqlite:///{file}", "worker.log")):
        report = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    (store,) = [found for found in report["findings"] if found["subject"] == "store"]
    assert store["message"] == f"{file} is gone, and what process 7 runs still has it open"
    assert "migrate" not in store["what_to_do"]
    assert "put the file back" in store["what_to_do"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "the environment variable STORY_KEY is not set; http://127.0.0.1:1/v1 was not asked"),
        (
            "s\nk",
            "the environment variable STORY_KEY holds no usable key; http://127.0.0.1:1/v1 was not asked",
        ),
        ("sk\n", "http://127.0.0.1:1/v1 does not answer: All connection attempts failed"),
    ],
)
def test_doctor_names_a_slot_its_address_and_the_variable_of_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, said: str
) -> None:
    slot = "base_url = 'http://me:secret@127.0.0.1:1/v1'\nmodel = 'm'\napi_key_env = 'STORY_KEY'\n"
    (tmp_path / "turnwright.toml").write_text(f"[slots.story]\n{slot}")
    monkeypatch.setenv("STORY_KEY", key)
    report = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    (story,) = [found for found in report["findings"] if found["subject"] == "slot story"]
    assert (story["state"], story["message"]) == ("wrong", said)


@pytest.mark.parametrize(
    "package", sorted(path.parent.name for path in (ROOT / "plugins").glob("*/PLUGIN.md"))
)
def test_bundled_packages_validate(package: str) -> None:
    path = ROOT / "plugins" / package
    answer = CliRunner().invoke(app, ["package", "validate", str(path)])
    assert answer.stdout == (f"✓ Static package validation: {path}\n  languages: text en; instructions en\n")
    assert (answer.exit_code, answer.stderr) == (0, "")


@pytest.mark.parametrize("inner", ["PLUGIN.md", "runtimes/query/RUNTIME.md"])
def test_any_manifest_of_a_package_checks_the_whole_package(inner: str) -> None:
    package = ROOT / "plugins" / "fact-index"
    answer = CliRunner().invoke(app, ["package", "validate", str(package / inner)])
    assert answer.stdout.splitlines()[0] == f"✓ Static package validation: {package}"


def test_problems_are_sorted_by_file_and_line_with_code_and_accepted(tmp_path: Path) -> None:
    package = tmp_path / "bad"
    package.mkdir()
    (package / "PLUGIN.md").write_text("---\ndescription: d\nversion: 1\nnope: 2\nconflicts: x\n---\n")
    answer = CliRunner().invoke(app, ["package", "validate", str(package)])
    assert answer.exit_code == 1
    lines = answer.stdout.splitlines()
    places = [int(line.split(":")[1]) for line in lines]
    assert places == sorted(places)
    assert len(lines) >= 3
    assert all(line.startswith("PLUGIN.md:") for line in lines)
    document = json.loads(CliRunner().invoke(app, ["package", "validate", str(package), "--json"]).stdout)
    assert document["ok"] is False
    assert [problem["line"] for problem in document["problems"] if problem["severity"] == "error"] == places


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("notes.txt", "notes.txt: package.layout: this belongs to no package (accepted: a package folder,"),
        ("lone/RUNTIME.md", "lone/RUNTIME.md: package.layout: this belongs to no package (accepted: "),
        ("huge", "big.bin: package.size: the package has a file of more than"),
        ("queue", "pipe: package.path: a package may not hold this: it is a device, a pipe or a socket"),
    ],
)
def test_what_cannot_be_read_as_a_package_is_a_problem_like_any_other(
    tmp_path: Path, path: str, line: str
) -> None:
    for folder in ("lone", "huge", "queue"):
        (tmp_path / folder).mkdir()
    for file in ("notes.txt", "lone/RUNTIME.md"):
        (tmp_path / file).write_text("Notes.")
    with (tmp_path / "huge/big.bin").open("wb") as big:
        big.truncate(MAX_FILE_BYTES + 1)
    os.mkfifo(tmp_path / "queue/pipe")
    answer = CliRunner().invoke(app, ["package", "validate", path])
    assert (answer.exit_code, answer.stderr) == (1, "")
    assert answer.stdout.startswith(line)


def test_a_command_of_its_own_process_leaves_with_its_status(tmp_path: Path) -> None:
    """The SDK may abort an interpreter that exits by itself (DESIGN §6)."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "client", "session", "list", "--json"],
        env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 5
    assert json.loads(ended.stdout)["error"]["code"] == "server.unreachable"


def test_ctrl_c_while_the_command_line_is_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    ended = subprocess.run(
        [sys.executable, "-m", "client", "--help"],
        env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (["--help"], {"temporalio", "sqlalchemy", "httpx"}),
        (["submit", "--help"], {"temporalio", "sqlalchemy", "httpx"}),
        (["package", "validate", str(ROOT / "plugins/dice")], {"temporalio", "sqlalchemy", "httpx"}),
        (["migrate"], {"temporalio", "httpx"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_imports_what_it_needs(tmp_path: Path, words: list[str], unneeded: set[str]) -> None:
    script = (
        "import json, sys\n"
        "from client.cli import status\n"
        "ended = status(sys.argv[1:])\n"
        "print(json.dumps([ended, [name for name in sys.modules if '.' not in name]]))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    status, imported = json.loads(ended.stdout.splitlines()[-1])
    assert (status, unneeded & set(imported)) == (0, set())


def test_a_reader_that_goes_away_ends_a_command_quietly(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "client", "doctor"],
        env=environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == b""


def test_a_port_in_use_is_not_taken() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert free_port(taken.getsockname()[1]) is None


def test_migrate_brings_a_new_database_to_this_version_and_again() -> None:
    for _ in range(2):
        done = CliRunner().invoke(app, ["migrate", "--json"])
        assert (done.exit_code, json.loads(done.stdout)) == (0, {"revision": HEAD})
