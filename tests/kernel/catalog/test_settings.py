"""Settings of packages: what may be set, what is set, what a turn runs with. Spec: plugin-model §27."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.catalog.settings import checked, effective, joined, places, unfit
from kernel.errors import Code, TurnwrightError
from kernel.manifest import Package
from kernel.wire.base import MAX_TEXT_BYTES
from tests.kernel.catalog.packages import package

SETTINGS = """
    - { key: text, type: text, default: hello }
    - { key: area, type: textarea }
    - { key: number, type: number, min: 0, max: 1, step: 0.1 }
    - { key: integer, type: integer, min: -3 }
    - { key: toggle, type: toggle, default: true }
    - { key: select, type: select, options: [calm, 2, { value: true, label: Yes }], default: calm }
    - { key: slider, type: slider, min: 1, max: 9, step: 2, default: 5 }
    - { key: slot, type: slot }
"""


def tuned(settings: str = SETTINGS) -> Package:
    return package("tuned", root=f"contributes:\n  settings:{settings}")


SLOTS = {"story", "plugin"}


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("text", ["", "héllo"], [1, True, [], "a\0b", "\ud800", "x" * (MAX_TEXT_BYTES + 1)]),
        ("area", ["two\nlines"], [1.5, {}]),
        ("number", [0, 1, 0.3, 0.7], [-0.1, 1.1, 0.25, True, "1", float("nan"), float("inf")]),
        ("integer", [-3, 0, 2**53 - 1], [-4, 1.0, 2**53, False, 10**400]),
        ("toggle", [True, False], [0, 1, "true"]),
        ("select", ["calm", 2, True], ["grim", 1, 2.0, False, ["calm"]]),
        ("slider", [1, 3, 9], [0, 2, 11, "3"]),
        ("slot", ["story"], ["gone", 1, ["story"], {}]),
    ],
)
def test_every_type_takes_what_fits_and_names_what_it_takes(
    key: str, good: list[Any], bad: list[Any]
) -> None:
    for value in [*good, None]:
        assert checked(tuned(), key, value, SLOTS) == value
    for value in bad:
        with pytest.raises(TurnwrightError) as refused:
            checked(tuned(), key, value, SLOTS)
        assert refused.value.code == Code.SETTING_INVALID
        assert refused.value.where == f"tuned.{key}"
        assert refused.value.accepted


def test_a_key_that_is_not_declared_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TurnwrightError) as refused:
        checked(tuned(), "mood", "calm", SLOTS)
    assert refused.value.code == Code.SETTING_UNKNOWN
    assert "slider" in refused.value.accepted
    with pytest.raises(TurnwrightError) as refused:
        checked(package("plain"), "mood", "calm", SLOTS)
    assert refused.value.accepted == "none"


def test_the_player_comes_before_the_world_and_the_world_before_the_default() -> None:
    values = effective(tuned(), {"text": "player"}, {"text": "world", "slider": 7})
    assert (values["text"], values["slider"], values["select"]) == ("player", 7, "calm")
    assert values["area"] is None
    assert set(values) == {"text", "area", "number", "integer", "toggle", "select", "slider", "slot"}


def test_a_value_that_no_longer_fits_counts_as_not_set_and_is_named() -> None:
    player = {"select": "grim", "slider": 3, "gone": 1}
    assert effective(tuned(), player, {"select": 2})["select"] == 2
    assert unfit(tuned(), player) == ("gone", "select")


def test_changes_are_joined_and_null_takes_back() -> None:
    before = {"a": {"x": 1, "y": 2}, "b": {"z": 3}}
    assert joined(before, {"a": {"x": None, "w": 4}, "b": {"z": None}}) == {"a": {"y": 2, "w": 4}}
    assert before == {"a": {"x": 1, "y": 2}, "b": {"z": 3}}


def test_a_prompt_writes_text_as_it_is_and_the_rest_as_json() -> None:
    values = {"text": "calm", "n": 0.5, "on": True, "none": None}
    assert places(values) == {
        "userSettings.text": "calm",
        "userSettings.n": "0.5",
        "userSettings.on": "true",
        "userSettings.none": "",
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from(["text", "number", "integer", "toggle", "select", "slider", "slot"]), JSON)
def test_any_json_is_taken_or_refused_by_name(key: str, value: Any) -> None:
    with suppress(TurnwrightError):
        json.dumps(checked(tuned(), key, value, SLOTS), allow_nan=False).encode()


@pytest.mark.parametrize("default", ["1e300", "0.25"])
def test_a_default_that_its_own_setting_does_not_allow_is_refused(default: str) -> None:
    with pytest.raises(AssertionError, match="default does not fit"):
        tuned(f"\n    - {{ key: n, type: number, step: 0.1, default: {default} }}\n")
