"""`turnwright package test`: cases through the real worker, replies written beforehand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client.cli import app
from client.testing.plan import plan
from kernel.errors import Code, TurnwrightError
from link.settings import load_settings
from tests.support.packages import STORY, function
from tests.support.rig import Files, write_packages

PLUGINS = Path(__file__).parents[2] / "plugins"
WORDS = function(
    'tone = ctx.user_settings["tone"]\nctx.logger.info("it begins")\n'
    'await ctx.plugin_data.set("words", "k", {"tone": tone})\n'
    'return {"outcome": "success", "value": {}}',
    root="contributes:\n  data: { words: { description: Words. } }\n"
    "  settings: [{ key: tone, type: text, default: plain }]\n",
)
CASES: list[dict[str, Any]] = [
    {
        "name": "sets",
        "userSettings": {"tone": "dry"},
        "expect": {
            "logs": ["it begins"],
            "pluginData": [{"namespace": "words", "key": "k", "field": "tone"}],
        },
    },
    {"name": "wrong", "expect": {"runtimeResults": [{"runtimeId": "words", "status": "failed"}]}},
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path


def written(home: Path, files: Files, cases: Any = None) -> Path:
    more = {} if cases is None else {"tests/runtime-cases.json": json.dumps(cases)}
    write_packages(home, {"words": {**files, **more}})
    return home / "words"


def refusal(named: str, **options: Any) -> TurnwrightError:
    with pytest.raises(TurnwrightError) as caught:
        plan(load_settings(), named, **options)
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("package", sorted(path.parent.name for path in PLUGINS.glob("*/PLUGIN.md")))
def test_the_cases_of_a_bundled_package_pass(package: str) -> None:
    answer = CliRunner().invoke(app, ["package", "test", package, "--json"])
    report = json.loads(answer.stdout)
    assert (answer.exit_code, report["ok"]) == (0, True), answer.stdout
    assert all(case["runtimeResults"] for case in report["cases"])


@pytest.mark.slow
def test_cases_are_told_with_what_did_not_come_and_the_status_says_so(home: Path) -> None:
    folder = written(home, WORDS, CASES)
    answer = CliRunner().invoke(app, ["package", "test", str(folder), "--pretty", "--show-prompts"])
    assert answer.exit_code == 1, answer.output
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("✓ sets  (words, ")
    assert '    data words k: {"tone": "dry"}' in lines
    assert "    words: expected failed, and it was success" in lines
    assert lines[-1] == "1 of 2 cases passed"


def test_a_package_of_several_runtimes_without_cases_says_which_file_is_missing(home: Path) -> None:
    runtimes = {
        f"runtimes/{name}/RUNTIME.md": "---\nschedule: { stage: audit }\n---\nLook.\n" for name in "ab"
    }
    folder = written(home, {"PLUGIN.md": "---\ndescription: Two.\n---\n", **runtimes})
    error = refusal(str(folder))
    assert error.message == 'plugin "words" has no tests/runtime-cases.json or covel.test.json'
    assert [one.case.name for one in plan(load_settings(), f"{folder}/a").cases] == ["smoke"]


def test_a_single_runtime_without_cases_gets_a_smoke_test(home: Path) -> None:
    assert [one.case.name for one in plan(load_settings(), str(written(home, STORY))).cases] == ["smoke"]


def test_a_runtime_or_a_case_of_a_package_is_chosen_by_name() -> None:
    settings = load_settings()
    query = plan(settings, "fact-index/query")
    assert {one.runtime.id for one in query.cases} == {"fact-index/query"}
    assert len(plan(settings, "fact-index", case="digest counts an empty index").cases) == 1


@pytest.mark.parametrize(
    ("cases", "code", "said"),
    [
        ([{"name": "a", "runtimeId": "words/x"}], Code.RUNTIME_UNKNOWN, "no runtime 'words/x'"),
        (
            [{"name": "a", "ignoreUpstreams": True}],
            Code.NOT_SUPPORTED,
            "ignoreUpstreams is not in",
        ),
        ([{"name": "a", "nope": 1}], Code.PACKAGE_INVALID, "unknown field `nope`"),
        ([{"name": "a", "withPlugins": ["nowhere"]}], Code.PACKAGE_UNKNOWN, "no package 'nowhere'"),
        ([], Code.PACKAGE_REFERENCE, 'plugin "words" has no case'),
    ],
)
def test_what_cannot_be_played_is_refused_before_anything_starts(
    home: Path, cases: Any, code: Code, said: str
) -> None:
    error = refusal(str(written(home, WORDS, cases)))
    assert error.code == code
    assert said in error.message


def test_a_name_that_nothing_has_is_refused(home: Path) -> None:
    assert refusal("nothing").code == Code.PACKAGE_UNKNOWN
    assert "accepted: sets, wrong" in str(refusal(str(written(home, WORDS, CASES)), case="other"))
