"""`turnwright package new`, `install`, `list`, `enable`, `disable`, `remove`."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client import validation
from client.cli import app
from kernel.manifest.cases import read_cases
from store.engine import Store
from store.migrate import upgrade
from store.package_files import read_folder
from store.switches import disabled
from tests.support.packages import STORY, function
from tests.support.rig import write_packages

KINDS = ("agent", "function", "multi")
OMENS = function("return {}")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TURNWRIGHT_PACKAGES", str(tmp_path / "mine"))
    write_packages(tmp_path / "src", {"omens": OMENS})
    return tmp_path


def typed(*words: str) -> Any:
    return CliRunner().invoke(app, ["package", *words], env={"COLUMNS": "200"})


def refused(*words: str, status: int = 3) -> str:
    answer = typed(*words)
    assert answer.exit_code == status, answer.stdout + answer.stderr
    assert not (Path("home") / "packages").exists()
    return str(answer.stderr)


def archive(path: str, *entries: tuple[str | zipfile.ZipInfo, str]) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in entries:
            opened.writestr(name, content)
    return path


def listed() -> dict[str, dict[str, Any]]:
    return {one["package_id"]: one for one in json.loads(typed("list", "--json").stdout)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_validates_without_advice(kind: str) -> None:
    made = json.loads(typed("new", "night_train", "--kind", kind, "--dir", "mine", "--json").stdout)
    checked = validation.check(Path(made["folder"]))
    assert (made["folder"], checked.errors, checked.advice) == ("mine/night_train", (), ())
    content = read_folder(Path(made["folder"])).files
    assert made["files"] == list(content)
    assert content["PLUGIN.md"].startswith(b"---\n# yaml-language-server: $schema=")
    cases, problems = read_cases(content["tests/runtime-cases.json"], file="cases")
    assert cases
    assert not problems
    assert not any(b"@package@" in text or b"@contract@" in text for text in content.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_cases_of_a_new_package_pass(kind: str) -> None:
    assert typed("new", "night_train", "--kind", kind).exit_code == 0
    answer = typed("test", "night_train", "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["ok"]) == (0, True), answer.stdout


def test_a_new_package_overwrites_nothing_and_has_a_name_that_packages_can_have() -> None:
    assert "wrote omens/PLUGIN.md" in typed("new", "omens").stdout
    assert "package.exists: there is a 'omens' already" in refused("new", "omens")
    assert "dice is the name of a bundled package" in refused("new", "dice")
    for name in ("../out", "Omens", "", "оmens", "a" * 65):
        assert "cannot be a package ID" in refused("new", name)


@pytest.mark.parametrize("source", ["src/omens", "src/omens/PLUGIN.md"])
def test_a_folder_is_installed_and_known_by_its_id(source: str) -> None:
    answer = typed("install", source)
    assert answer.exit_code == 0
    assert "installed omens 0.0.0" in answer.stdout
    assert "turnwright package approve omens" in answer.stdout
    assert read_folder(Path("home/packages/omens")).files == read_folder(Path("src/omens")).files
    assert typed("validate", "omens").exit_code == 0
    assert listed()["omens"]["origin"] == "installed"
    doctor = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    (packages,) = [one for one in doctor["findings"] if one["subject"] == "packages"]
    assert "omens" in packages["message"]


@pytest.mark.parametrize("prefix", ["", "omens/"])
def test_an_archive_is_installed(prefix: str) -> None:
    files = [(f"{prefix}{name}", text) for name, text in OMENS.items()]
    mac = [("__MACOSX/._omens", "junk"), (f"{prefix}.DS_Store", "junk"), (prefix or "schemas/", "")]
    path = archive("omens.zip" if not prefix else "omens-0.1.0.zip", *mac, *files)
    answer = json.loads(typed("install", path, "--json").stdout)
    assert answer["package_id"] == "omens"
    assert answer["digest"] == validation.check(Path("src/omens")).digest
    assert read_folder(Path(answer["folder"])).files == read_folder(Path("src/omens")).files


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("omens/notes.md")
    entry.external_attr = 0o120777 << 16
    return entry


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("../omens/PLUGIN.md", "package.path"),
        ("omens/../../out.md", "package.path"),
        ("/etc/cron.d/omens", "package.path"),
        ("omens\\out.md", "package.path"),
        ("omens/a\u200b.md", "package.path"),
        (link(), "package.path"),
        ("omens/plugin.md", "differ only in case"),
        ("omens/PLUGIN.md/a.md", "package.path"),
        ("other/notes.md", "package.layout"),
    ],
)
def test_a_hostile_archive_is_refused_whole(entry: Any, code: str) -> None:
    files = [(f"omens/{name}", text) for name, text in OMENS.items()]
    assert code in refused("install", archive("omens.zip", *files, (entry, "x")))
    assert not Path("out.md").exists()


def test_a_name_with_a_nul_a_bomb_and_no_archive_are_refused() -> None:
    path = Path(archive("omens.zip", ("PLUGIN.md", "x"), ("handler?py", "x")))
    path.write_bytes(path.read_bytes().replace(b"handler?py", b"handler\0py"))
    assert "package.path" in refused("install", str(path))
    assert "package.size" in refused("install", archive("omens.zip", ("PLUGIN.md", "0" * (9 << 20))))
    nested = io.BytesIO()
    with zipfile.ZipFile(nested, "w") as opened:
        opened.writestr("PLUGIN.md", "x")
    path.write_bytes(nested.getvalue()[:40])
    assert "package.invalid" in refused("install", str(path))
    with path.open("wb") as large:
        large.truncate(64 << 20)
    assert "package.size" in refused("install", str(path))
    os.mkfifo("pipe.zip")
    assert "package.layout" in refused("install", "pipe.zip")
    assert "package.unknown" in refused("install", "nowhere", status=4)


def test_a_folder_that_is_no_sound_package_is_not_installed() -> None:
    (Path("src/omens") / "out.json").symlink_to("/etc/hostname")
    assert "package.path" in refused("install", "src/omens")
    (Path("src/omens") / "out.json").unlink()
    (Path("src/omens") / "handler.py").unlink()
    assert "package.invalid" in refused("install", "src/omens")
    assert "cannot be a package ID" in refused("install", archive("Omens.zip", *STORY.items()))


def test_an_id_is_there_once_and_what_is_installed_is_replaced_when_asked() -> None:
    shutil.copytree("src/omens", "src/dice")
    shutil.copytree("src/omens", "mine/mill")
    shutil.copytree("src/omens", "src/mill")
    for name in ("dice", "mill"):
        assert f"there is a package '{name}' already" in refused("install", f"src/{name}", "--replace")
    assert typed("install", "src/omens").exit_code == 0
    Path("src/omens/README.md").write_text("More.")
    again = typed("install", "src/omens")
    assert (again.exit_code, "accepted: --replace" in again.stderr) == (3, True)
    assert typed("install", "src/omens", "--replace").exit_code == 0
    assert Path("home/packages/omens/README.md").read_text() == "More."
    shutil.copytree("src/omens", "mine/omens")
    doubled = [one for one in json.loads(typed("list", "--json").stdout) if "the same id" in one["problem"]]
    assert [(one["package_id"], one["origin"]) for one in doubled] == [
        ("omens", "folder"),
        ("omens", "installed"),
    ]


def test_the_list_says_where_a_package_comes_from_and_what_is_wrong_with_it() -> None:
    write_packages(Path("mine"), {"broken": {"PLUGIN.md": "---\nversion: x\n---\n"}})
    typed("install", "src/omens")
    found = listed()
    assert {name: one["origin"] for name, one in found.items()} == {
        "broken": "folder",
        "chronicle": "bundled",
        "dice": "bundled",
        "fact-index": "bundled",
        "omens": "installed",
    }
    assert "package.field" in found["broken"]["problem"]
    assert (found["dice"]["version"], found["dice"]["problem"], found["dice"]["enabled"]) == (
        "0.1.0",
        "",
        True,
    )
    assert "bundled" in typed("list").stdout


def test_a_package_is_switched_off_and_on(home: Path) -> None:
    asyncio.run(upgrade(f"sqlite:///{home}/home/turnwright.db"))
    assert typed("disable", "dice").stdout == "dice is off for new choices\n"
    assert not listed()["dice"]["enabled"]
    assert asyncio.run(off(home)) == {"dice"}
    assert typed("enable", "dice").stdout == "dice is on for new choices\n"
    assert listed()["dice"]["enabled"]
    unknown = typed("disable", "nothing")
    assert (unknown.exit_code, "accepted: chronicle, dice" in unknown.stderr) == (4, True)


async def off(home: Path) -> frozenset[str]:
    store = await Store.open(f"sqlite:///{home}/home/turnwright.db")
    try:
        async with store.read() as conn:
            return await disabled(conn)
    finally:
        await store.close()


def test_only_what_was_installed_is_removed() -> None:
    typed("install", "src/omens")
    assert "removed omens" in typed("remove", "omens").stdout
    assert list(Path("home/packages").iterdir()) == []
    for name, reason in (("omens", "there is none"), ("dice", "nobody installed it")):
        answer = typed("remove", name)
        assert (answer.exit_code, reason in answer.stderr) == (4, True)
