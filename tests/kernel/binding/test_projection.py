"""What a model is spared. Spec: plugin-model §7, bookkeeping projection."""

from __future__ import annotations

import pytest

from kernel.binding.projection import project

UUID = "3f2c9a10-9d4e-4a6b-8c1d-0123456789ab"
TIME = "2025-01-02T03:04:05.678Z"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", UUID),
        ("characterId", UUID.upper()),
        ("characterIds", [UUID, UUID]),
        ("createdAt", TIME),
        ("createdAt", "2025-01-02T03:04+01:00"),
        ("timestamp", TIME),
        ("sessionId", "anything"),
        ("sessionId", 3),
    ],
)
def test_bookkeeping_goes_at_every_depth(name: str, value: object) -> None:
    assert project({"a": [{name: value, "keep": 1}], name: value}) == {"a": [{"keep": 1}]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "mara"),
        ("id", 7),
        ("formId", "intro"),
        ("Id", 1),
        ("characterIds", []),
        ("characterIds", [UUID, "mara"]),
        ("idea", UUID),
        ("uuid", UUID),
        ("paid", UUID),
        ("arrivedAt", "at dawn"),
        ("arrivedAt", "2025-01-02"),
        ("arrivedAt", 1735787045),
        ("time", TIME),
        ("heat", TIME),
        ("timestamps", [TIME]),
    ],
)
def test_name_and_value_must_both_match(name: str, value: object) -> None:
    assert project({name: value}) == {name: value}


def test_the_record_itself_stays_whole() -> None:
    record = {"id": UUID, "tags": ("a",), "none": None}
    assert project(record) == {"tags": ["a"], "none": None}
    assert record["id"] == UUID
    assert project("text") == "text"
