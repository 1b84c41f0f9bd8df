"""The TypeScript example speaks of things that exist. It is compiled and run by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import get_args
from urllib.parse import unquote

import pytest
from pydantic import BaseModel

from kernel.wire import names
from kernel.wire.approvals import Approval
from kernel.wire.ids import session_workflow
from kernel.wire.session import Receipt, Resolve, SessionView, Submit
from kernel.wire.turn import Story, TurnResult
from kernel.wire.usage import UsageTotals

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "typescript"
SOURCE = (FOLDER / "session.ts").read_text(encoding="utf-8")


def fields(text: str) -> set[str]:
    return set(re.findall(r"(?:^|[{,;])\s*(\w+)\??:", text, re.MULTILINE))


def interface(name: str) -> str:
    found = re.search(rf"interface {name} {{(.*?)^}}", SOURCE, re.DOTALL | re.MULTILINE)
    assert found, name
    return found[1]


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("Receipt", [Receipt]),
        ("Approval", [Approval]),
        ("SessionView", [SessionView]),
        ("TurnResult", [TurnResult, Story, UsageTotals]),
    ],
)
def test_fields_of_answers_exist(name: str, models: Iterable[type[BaseModel]]) -> None:
    assert fields(interface(name)) <= {field for model in models for field in model.model_fields}


def test_statuses_are_those_of_the_product() -> None:
    for name, model in (("Approval", Approval), ("SessionView", SessionView), ("TurnResult", TurnResult)):
        line = re.search(r"^  status\??:(.*?);", interface(name), re.MULTILINE)
        assert line
        assert set(re.findall(r"'(\w+)'", line[1])) == set(get_args(model.model_fields["status"].annotation))


def test_messages_and_their_fields_exist() -> None:
    started = re.search(r"workflow\.start\('(\w+)'.*?taskQueue: '(\w+)'", SOURCE, re.DOTALL)
    assert started
    assert started.groups() == (names.SESSION, names.QUEUE)
    assert re.findall(r"executeUpdate<.*?>\('(\w+)'", SOURCE) == [names.SUBMIT]
    assert re.findall(r"\.query<.*?>\('(\w+)'", SOURCE) == [names.STATE]
    [(signal, answer)] = re.findall(r"\.signal\('(\w+)', ({.*?})\)", SOURCE)
    assert signal == names.RESOLVE
    assert fields(answer) <= set(Resolve.model_fields)
    assert set(re.findall(r"action_id|text(?= })", SOURCE)) <= set(Submit.model_fields)


def test_escaping_of_the_example_is_ours() -> None:
    """What `segment` keeps beside letters and digits is what a workflow id keeps."""
    escaped = set(re.search(r"/\[(.+?)\]/g", SOURCE)[1])  # type: ignore[index]
    restored = {unquote(code) for code in re.findall(r"/(%[0-9A-F]{2})/g", SOURCE)}
    kept = (set("-_.!~*'()") - escaped) | restored
    printable = [chr(code) for code in range(33, 127) if not chr(code).isalnum()]
    assert kept == {mark for mark in printable if session_workflow(mark) == f"session/{mark}"}


def test_versions_are_pinned_without_addresses() -> None:
    text = (FOLDER / "package.json").read_text(encoding="utf-8")
    package = json.loads(text)
    versions = {**package["dependencies"], **package["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    assert "://" not in text
    assert not (FOLDER / "package-lock.json").exists()
