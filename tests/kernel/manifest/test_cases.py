"""Case files are read strictly, and what a run did is held against them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel.manifest.cases import Case, later, read_cases
from kernel.manifest.verdicts import Ended, Observed, verdict

REPLY = {"content": "Rain.", "toolCalls": [{"name": "look", "arguments": "{}"}], "usage": {"promptTokens": 3}}


def case(**fields: Any) -> Case:
    return Case.model_validate({"name": "one", **fields})


def read(value: Any) -> tuple[list[str], list[str]]:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    cases, problems = read_cases(content, file="tests/runtime-cases.json")
    return [one.name for one in cases], [f"{one.path}: {one.message}" for one in problems]


@pytest.mark.parametrize("whole", [{"cases": [{"name": "a"}, {"name": "b"}]}, [{"name": "a"}, {"name": "b"}]])
def test_a_file_holds_a_list_or_cases(whole: Any) -> None:
    assert read(whole) == (["a", "b"], [])


def test_every_field_of_a_case_parses() -> None:
    whole = {
        "name": "all",
        "runtimeId": "a/b",
        "message": "Hello.",
        "payload": {"n": 1},
        "userSettings": {"tone": "dry"},
        "mode": "live",
        "characterSchema": {},
        "withPlugins": ["dice"],
        "ignoreUpstreams": True,
        "llmResponses": [REPLY],
        "artifacts": {"saveImages": {"namespace": "n", "field": "ref", "dir": "out"}},
        "expect": {
            "runtimeResults": [{"runtimeId": "a/b", "status": "failed", "errorIncludes": "x"}],
            "events": [{"topic": "t"}],
            "logs": ["said"],
            "pluginData": [{"namespace": "n", "key": "k", "status": "present", "field": "f"}],
            "assetGenerations": [{"modality": "image", "field": "ref"}],
        },
    }
    assert read([whole]) == (["all"], [])
    asked = later(Case.model_validate(whole))
    assert asked == ("characterSchema", "ignoreUpstreams", "artifacts", "expect.assetGenerations")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b" " * (1024 * 1024 + 1), "is larger than"),
        (3, "does not hold a map of fields"),
        ([{}], "cases[0].name: is required"),
        ([{"name": "a", "llmcontent": "x"}], "did you mean llmContent?"),
        ([{"name": "a"}, {"name": "a"}], "a names two cases"),
        ([{"name": "a", "llmContent": "x", "llmObject": {}}], "llmObject goes not with llmContent"),
        ([{"name": "a", "mode": "fast"}], "`fast` is not one of its values"),
        (
            [{"name": "a", "expect": {"runtimeResults": [{"runtimeId": "r", "status": "fine"}]}}],
            "is not one of its values",
        ),
    ],
)
def test_what_cannot_be_read_is_named(value: Any, said: str) -> None:
    names, problems = read(value)
    assert names == []
    assert said in "; ".join(problems)


@pytest.mark.parametrize(
    ("fields", "replies"),
    [
        ({}, None),
        ({"llmContent": "Rain."}, ["Rain."]),
        ({"llmObject": {"a": 1}}, ['{"a": 1}']),
        ({"llmObject": None}, ["null"]),
        ({"llmResponse": {"content": "x"}}, ["x"]),
        ({"llmResponses": [{"content": "x"}, {"content": "y"}]}, ["x", "y"]),
        ({"llmResponses": []}, []),
    ],
)
def test_replies_have_four_forms_and_may_be_left_to_the_offline_model(
    fields: dict[str, Any], replies: list[str] | None
) -> None:
    found = case(**fields).replies
    assert (None if found is None else [reply.content for reply in found]) == replies


GOOD = Observed(
    "committed",
    runs={"a": Ended("success"), "b": Ended("skipped", "runtime.input-missing", "no story")},
    events=("dice.rolled",),
    logs="INFO a: it rains\n",
    data={"facts": {"k": {"list": [{"text": "x"}], "a/b": 1}}},
)
BAD = Observed("committed", runs={"a": Ended("failed", "runtime.failed", "boom at line 3")})


@pytest.mark.parametrize(
    ("observed", "expect", "said"),
    [
        (GOOD, {}, []),
        (GOOD, {"runtimeResults": [{"runtimeId": "a", "status": "success"}]}, []),
        (
            GOOD,
            {"runtimeResults": [{"runtimeId": "b", "status": "skipped", "errorIncludes": "no story"}]},
            [],
        ),
        (GOOD, {"runtimeResults": [{"runtimeId": "c", "status": "success"}]}, ["it did not run"]),
        (
            GOOD,
            {"runtimeResults": [{"runtimeId": "b", "status": "success"}]},
            ["it was skipped: runtime"],
        ),
        (GOOD, {"events": [{"topic": "dice.rolled"}], "logs": ["it rains"]}, []),
        (GOOD, {"events": [{"topic": "x"}]}, ["event x"]),
        (GOOD, {"logs": ["snow"]}, ["'snow'"]),
        (GOOD, {"pluginData": [{"namespace": "facts"}, {"namespace": "facts", "key": "k"}]}, []),
        (GOOD, {"pluginData": [{"namespace": "facts", "field": "/list/0/text"}]}, []),
        (GOOD, {"pluginData": [{"namespace": "facts", "field": "a/b"}]}, []),
        (GOOD, {"pluginData": [{"namespace": "facts", "field": "/a~1b"}]}, []),
        (GOOD, {"pluginData": [{"namespace": "facts", "field": "/list/1"}]}, ["expected the field /list/1"]),
        (GOOD, {"pluginData": [{"namespace": "facts", "key": "z"}]}, ["facts z: expected to be present"]),
        (GOOD, {"pluginData": [{"namespace": "facts", "key": "z", "status": "absent"}]}, []),
        (GOOD, {"pluginData": [{"namespace": "facts", "status": "absent"}]}, ["expected to be absent"]),
        (BAD, {}, ["a: failed: runtime.failed: boom at line 3"]),
        (BAD, {"runtimeResults": [{"runtimeId": "a", "status": "failed"}]}, []),
        (
            BAD,
            {"runtimeResults": [{"runtimeId": "a", "status": "failed", "errorIncludes": "bang"}]},
            ["expected 'bang'"],
        ),
        (
            Observed("rejected", "turn.rejected: no", {"a": Ended("skipped")}),
            {},
            ["the turn was rejected: turn.rejected: no"],
        ),
    ],
)
def test_a_verdict_names_what_did_not_come_and_what_nobody_expected(
    observed: Observed, expect: dict[str, Any], said: list[str]
) -> None:
    found = verdict(case(expect=expect), observed, "a")
    assert len(found) == len(said)
    assert all(part in problem for part, problem in zip(said, found, strict=True))


def test_the_runtime_under_test_has_to_run() -> None:
    assert verdict(case(), GOOD, "c") == ("c: it did not run",)
