"""The commands that talk to a session, against a real one: what they print, and the status they end with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client.cli import app
from client.processes import ROOT
from tests.support.beside import Beside, beside
from tests.support.model_server import Call, Reply
from tests.support.packages import STORY, story_with
from tests.support.rig import SessionDriver
from tests.turns.builders import Fn, entry, package, tool

pytestmark = pytest.mark.slow

DARES = story_with(
    "{plugin: [act]}",
    entry(tool("act", 'return "did it"', needs_approval=True, risk="write")),
    "  tools: [{ name: act, needsApproval: true, risk: write }]\n",
)
WORKS = package(
    look=Fn(
        "{trigger: {type: manual}}",
        'return {"outcome": "success", "value": {"seen": ctx.manual_payload}}',
    ),
    fall=Fn("{trigger: {type: manual}}", 'raise ValueError("the floor gives way")'),
    tidy=Fn("{stage: post-turn, detached: {settle: true}}", more="effects: {reads: []}\n"),
)
NEEDY = {"PLUGIN.md": "---\ndescription: Needs a gift.\nrequires: [gift@1]\n---\n"}
GIVER = {"PLUGIN.md": "---\ndescription: Gives one.\nprovides: [gift@1]\n---\n"}
SETTINGS = """contributes:
  settings:
    - { key: tone, type: select, options: [calm, grim], default: calm }
    - { key: count, type: slider, min: 1, max: 9, step: 2, default: 5 }
    - { key: word, type: text }
    - { key: loud, type: toggle, default: false }
    - { key: free, type: number }
"""
TUNED = {
    "PLUGIN.md": f"---\ndescription: Reads its settings.\n{SETTINGS}"
    "runtime:\n  schedule: { trigger: { type: manual } }\n  function: {}\n---\n",
    "handler.py": "async def handler(ctx):\n"
    '    return {"outcome": "success", "value": dict(ctx.user_settings)}\n',
}
ASKS = [Call(name="act", arguments='{"what":"jump"}', id="c1")]
SCRIPT = [
    Reply(tool_calls=ASKS, when="I dare to jump."),
    Reply(tool_calls=ASKS, when="I hardly dare."),
    Reply(tool_calls=ASKS, when="I dare what a program may."),
    Reply(tool_calls=ASKS, when="I dare what a pipe may"),
    Reply(text="So it is.", times=0),
]


@dataclass
class Terminal:
    """Types commands; each must end with the status that is expected of it."""

    beside: Beside

    def type(self, *words: str, status: int = 0) -> str:
        """What a command prints on stdout; one that ends well only warns on stderr, of its own packages."""
        answer = CliRunner().invoke(app, list(words), env=self.beside.environ)
        assert answer.exit_code == status, answer.output
        assert status or answer.stderr == ""
        return answer.stdout

    def process(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """A command as a process of its own; with `shell`, a line for the shell, to which `$0` is Python."""
        shell = options.pop("shell", False)
        command = ["sh", "-c", *words, sys.executable] if shell else [sys.executable, "-m", "client", *words]
        environ = {**os.environ, **self.beside.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=60, check=False, **options
        )

    def json(self, *words: str, status: int = 0) -> Any:
        """The one document that a command prints with --json."""
        return json.loads(self.type(*words, "--json", status=status))

    def refused(self, *words: str, status: int, code: str) -> None:
        """A refusal: told to people on stderr alone, and to programs on stdout too."""
        plain = CliRunner().invoke(app, list(words), env=self.beside.environ)
        assert (plain.exit_code, plain.stdout) == (status, "")
        assert plain.stderr.startswith(f"error: {code}: ")
        assert self.json(*words, status=status)["error"]["code"] == code

    def asked(self, session: str) -> str:
        """The ref of the question that a session waits with, once it stands in the inbox."""
        handle = self.beside.rig.client.get_workflow_handle(f"session/{session}")
        driver = SessionDriver(self.beside.rig, session, handle)
        self.beside.ask(driver.until(lambda state: any(a["status"] == "open" for a in state["approvals"])))
        while not (found := self.json("inbox", "--session", session)):
            pass
        return str(found[0]["ref"])


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One server, worker and store for all commands; each test has a session of its own."""
    packages = {"tale": STORY, "dares": DARES, "works": WORKS, "needy": NEEDY, "giver": GIVER, "tuned": TUNED}
    with beside(tmp_path_factory.mktemp("rig"), packages=packages, script=SCRIPT) as standing:
        yield Terminal(standing)


def test_a_session_is_listed_paused_resumed_and_ended(terminal: Terminal) -> None:
    assert terminal.type("session", "new", "days", "--package", "tale") == "session days is active\n"
    terminal.refused("session", "new", "days", status=3, code="session.exists")
    (listed,) = [one for one in terminal.json("session", "list") if one["session_id"] == "days"]
    assert (listed["status"], listed["turns"], listed["packages"]) == ("active", 0, ["tale"])
    assert re.search(r"^days +active +0 +tale +\d{4}-", terminal.type("session", "list"), re.MULTILINE)
    assert terminal.type("session", "pause", "days") == "session days is paused\n"
    assert "session days: paused" in terminal.type("session", "show", "days")
    assert terminal.json("session", "resume", "days") == {"status": "active", "ending": False}
    assert terminal.json("session", "pause", "days") == {"status": "paused", "ending": False}
    assert terminal.type("session", "resume", "days") == "session days is active\n"
    assert terminal.type("session", "end", "days") == "session days ends\n"
    terminal.refused("session", "end", "days", status=3, code="session.ended")
    terminal.refused("session", "pause", "nights", status=4, code="session.unknown")


def test_a_bundled_package_is_activated_without_a_warning(terminal: Terminal) -> None:
    made = terminal.type("session", "new", "bundled", "--package", "chronicle", "--package", "works")
    assert made == "session bundled is active\n"


def test_a_session_is_changed_from_the_next_turn_on(terminal: Terminal) -> None:
    terminal.type("session", "new", "change", "--package", "tale")
    changed = terminal.type("session", "set", "change", "--package", "tale", "--package", "works")
    assert changed == "in force as revision 1\n"
    bound = terminal.json("session", "set", "change", "--bind", "story=plugin", "--locale", "de")
    assert bound == {"revision": 2, "in_force": True}
    (listed,) = [one for one in terminal.json("session", "list") if one["session_id"] == "change"]
    assert listed["packages"] == ["tale", "works"]
    terminal.refused("session", "set", "change", "--package", "gone", status=4, code="package.unknown")
    terminal.refused("session", "set", "change", "--bind", "story=gone", status=3, code="model.unconfigured")


def test_the_packages_of_a_session_are_shown_with_reasons_and_changed(terminal: Terminal) -> None:
    def packages(*change: str) -> Any:
        return terminal.json("session", "packages", "chosen", *change)

    def refused(*change: str, status: int, code: str) -> None:
        terminal.refused("session", "packages", "chosen", *change, status=status, code=code)

    terminal.type("session", "new", "chosen", "--package", "needy")
    assert {one["package_id"]: one["reason"] for one in packages()["active"]} == {
        "giver": "sole provider of gift@1, which needy requires",
        "needy": "requested",
    }
    head, *rows = terminal.type("session", "packages", "chosen", "--add", "tuned").splitlines()
    assert head.split() == ["package", "state", "why"]
    assert [row.split()[:2] for row in rows] == [[name, "active"] for name in ("giver", "needy", "tuned")]
    known = packages("--exclude", "giver", "--remove", "tuned")
    assert (known["requested"], known["excluded"], known["active"]) == (["needy"], ["giver"], [])
    assert [one["code"] for one in known["inactive"]] == ["activation.excluded"]
    notices = terminal.json("session", "show", "chosen")["notices"]
    assert [notice["code"] for notice in notices] == ["activation.excluded"]
    known = packages("--add", "giver", "--provider", "gift@1=giver")
    assert (known["excluded"], known["providers"], known["inactive"]) == ([], {"gift@1": "giver"}, [])
    assert packages("--provider", "gift@1=")["providers"] == {}
    refused("--remove", "gone", status=4, code="package.unknown")
    refused("--exclude", "gone", status=4, code="package.unknown")
    refused("--provider", "x@1=gone", status=4, code="package.unknown")
    refused("--provider", "x@1=tale", status=3, code="activation.missing-provider")
    terminal.refused("session", "packages", "nobody", status=4, code="session.unknown")


def test_settings_of_packages_are_set_checked_and_read(terminal: Terminal) -> None:
    terminal.type("session", "new", "tuning", "--package", "tuned")
    terminal.type("session", "set", "tuning", "tuned.tone=grim", "tuned.count=3", 'tuned.word="7"')

    def values() -> Any:
        return terminal.json("run", "tuning", "tuned", "--wait")["output"]

    assert values() == {"tone": "grim", "count": 3, "word": "7", "loud": False, "free": None}
    terminal.type("session", "set", "tuning", "tuned.tone=null")
    assert values()["tone"] == "calm"
    assert terminal.json("session", "packages", "tuning")["settings"] == {"tuned": {"count": 3, "word": "7"}}
    terminal.refused("session", "set", "tuning", "tuned.count=4", status=3, code="setting.invalid")
    terminal.refused("session", "set", "tuning", "tuned.mood=4", status=4, code="setting.unknown")
    terminal.refused("session", "set", "tuning", "tale.mood=4", status=4, code="setting.unknown")


def test_a_manual_runtime_is_run_and_its_turn_looked_at(terminal: Terminal) -> None:
    terminal.type("session", "new", "run", "--package", "works")
    shown = terminal.type("run", "run", "works/look", "--payload", '{"n": 3}', "--wait")
    assert '"seen": {' in shown
    result = terminal.json("run", "run", "works/look", "--payload", "[7]", "--action-id", "a", "--wait")
    assert (result["status"], result["output"]) == ("committed", {"seen": [7]})
    receipt = terminal.json("run", "run", "works/look", "--action-id", "a")
    assert receipt["turn_id"] == result["turn_id"]
    assert receipt["workflow_id"] in terminal.type("run", "run", "works/look", "--action-id", "a")
    failed = terminal.json("run", "run", "works/fall", "--wait", status=6)
    assert failed["runs"][0]["status"] == "failed"
    terminal.refused("run", "run", "works/gone", "--wait", status=6, code="runtime.unknown")


def test_a_turn_is_shown_and_drawn_by_its_id_and_its_workflow_id(terminal: Terminal) -> None:
    terminal.type("session", "new", "look", "--package", "tale", "--package", "works")
    result = terminal.json("submit", "look", "I look.", "--wait")
    turn, workflow_id = result["turn_id"], f"turn/look/{result['turn_id']}"
    shown = terminal.type("turn", "show", turn)
    assert shown.startswith(f"turn {turn} of look: committed\naction ")
    assert "So it is." in shown
    record = terminal.json("turn", "show", workflow_id)
    assert (record["status"], record["messages"][0]["text"]) == ("committed", "I look.")
    drawn = terminal.type("turn", "graph", workflow_id)
    assert drawn.startswith(f"turn {turn} of look: committed, logical turn 1\nnarrative\n  ✓ tale ")
    assert {node["runtime_id"] for node in terminal.json("turn", "graph", turn)["nodes"]} >= {"tale"}
    assert terminal.type("turn", "graph", turn, "--format", "mermaid").startswith("flowchart ")
    for command in ("show", "graph", "stop"):
        terminal.refused("turn", command, "t0", status=4, code="turn.unknown")


def test_the_inbox_lists_a_question_and_the_first_answer_wins(terminal: Terminal) -> None:
    terminal.type("session", "new", "dare", "--package", "dares")
    terminal.type("submit", "dare", "I dare to jump.", "--action-id", "first")
    ref = terminal.asked("dare")
    row = next(line for line in terminal.type("inbox").splitlines() if ref in line)
    assert re.fullmatch(rf"{ref} +dare +dares +act +{{\"what\":\"jump\"}} +23 h 59 min *", row)
    assert f"? approval {ref}: dares asks to call act" in terminal.type("session", "show", "dare")
    assert terminal.type("resolve", ref, "--approve") == f"{ref}: applied\n"
    assert terminal.json("resolve", ref, "--deny") == {"ref": ref, "outcome": "superseded"}
    turn = terminal.json("submit", "dare", "I dare to jump.", "--action-id", "first", "--wait")["turn_id"]
    assert "tool ✓ dares calls act" in terminal.type("turn", "show", turn)
    terminal.refused("resolve", "a0", "--approve", status=4, code="approval.unknown")


def test_a_denied_call_does_not_run(terminal: Terminal) -> None:
    terminal.type("session", "new", "coward", "--package", "dares")
    terminal.type("submit", "coward", "I hardly dare.", "--action-id", "first")
    ref = terminal.asked("coward")
    denied = terminal.json("resolve", ref, "--deny", "--note", "Too high.", "--session", "coward")
    assert denied == {"ref": ref, "outcome": "applied"}
    turn = terminal.json("submit", "coward", "I hardly dare.", "--action-id", "first", "--wait")["turn_id"]
    assert "tool ✗ dares calls act" in (shown := terminal.type("turn", "show", turn))
    assert "[tool.denied]" in shown


def test_jobs_are_listed_with_how_they_stand(terminal: Terminal) -> None:
    terminal.type("session", "new", "jobs", "--package", "tale", "--package", "works")
    (job,) = terminal.json("submit", "jobs", "I go.", "--wait")["jobs"]
    terminal.type(
        "submit", "jobs", "I go on.", "--wait"
    )  # waits until the job of the turn before has settled
    listed = terminal.json("jobs", "list", "--session", "jobs")
    assert [one["status"] for one in listed if one["job_id"] == job["job_id"]] == ["succeeded"]
    rows = terminal.type("jobs", "list").splitlines()
    assert rows[0].split() == ["job", "session", "runtime", "status", "reason"]
    assert any(row.split()[:4] == [job["job_id"], "jobs", "works/tidy", "succeeded"] for row in rows)


def test_play_reads_lines_and_tells_each_event_as_json(terminal: Terminal) -> None:
    terminal.type("session", "new", "program", "--package", "dares")
    typed = "I dare what a program may.\ny\n/state\n"
    environ = terminal.beside.environ
    played = CliRunner().invoke(app, ["play", "program", "--json"], input=typed, env=environ)
    assert (played.exit_code, played.stderr) == (0, "")
    told = [json.loads(line) for line in played.stdout.splitlines()]
    events = [one["event"] for one in told if one["event"] not in ("tool", "text")]
    assert events == ["session", "turn", "approval", "answer", "result", "session"]
    by_event = {one["event"]: one for one in told}
    assert by_event["approval"]["approval"]["tool"] == "act"
    assert (by_event["answer"]["decision"], by_event["answer"]["outcome"]) == ("approve", "applied")
    assert by_event["tool"]["tool"]["ok"] is True
    assert "".join(one["text"] for one in told if one["event"] == "text") == "So it is."
    assert by_event["result"]["result"]["story"]["text"] == "So it is."
    assert by_event["session"]["session"]["completed_player_turns"] == 1


def test_play_prompts_a_person(terminal: Terminal) -> None:
    terminal.type("session", "new", "person", "--package", "tale")
    person, keyboard = os.openpty()
    os.write(person, b"I wait.\n/quit\n")
    played = terminal.process("play", "person", stdin=keyboard)
    os.close(person)
    os.close(keyboard)
    assert (played.returncode, played.stderr) == (0, "")
    assert "  So it is.\n" in played.stdout
    assert played.stdout.count("> ") == 2


def test_play_from_a_pipe_prompts_nobody_and_denies_what_is_open_at_its_end(terminal: Terminal) -> None:
    terminal.type("session", "new", "pipe", "--package", "dares")
    played = CliRunner().invoke(
        app, ["play", "pipe"], input="I dare what a pipe may.\n", env=terminal.beside.environ
    )
    assert (played.exit_code, played.stderr) == (0, "")
    assert "> " not in played.stdout
    assert "? approval " in played.stdout
    assert "  the input has ended, and nobody can allow it\n  denied\n" in played.stdout
    assert "  So it is.\n" in played.stdout


@pytest.mark.parametrize(
    ("stdin", "told"), [("<&-", 0), ("</dev/null", 0), ("<in.txt", 1)], ids=["closed", "empty", "bytes"]
)
def test_play_ends_with_its_input_whatever_that_is(
    terminal: Terminal, tmp_path: Path, stdin: str, told: int
) -> None:
    terminal.type("session", "new", f"input-{told}{len(stdin)}", "--package", "tale")
    (tmp_path / "in.txt").write_bytes(b"I wait \xff\xfe.")
    command = f'exec "$0" -m client play input-{told}{len(stdin)} {stdin}'
    played = terminal.process(command, shell=True, cwd=tmp_path)
    assert (played.returncode, played.stderr) == (0, "")
    assert played.stdout.count("So it is.") == told


def test_play_of_an_ended_session_is_refused(terminal: Terminal) -> None:
    terminal.type("session", "new", "over", "--package", "tale")
    terminal.type("session", "end", "over")
    handle = terminal.beside.rig.client.get_workflow_handle("session/over")
    terminal.beside.ask(handle.result())
    played = CliRunner().invoke(app, ["play", "over", "--json"], input="", env=terminal.beside.environ)
    assert played.exit_code == 3
    assert played.stderr.startswith("error: session.ended: ")
    assert json.loads(played.stdout)["error"]["code"] == "session.ended"
