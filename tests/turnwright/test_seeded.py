from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwright.sdk import SeededRandom

BOUND = st.integers(-(2**63), 2**63 - 1)


@given(st.text(), BOUND, BOUND)
def test_a_number_lies_within_its_bounds(seed: str, one: int, other: int) -> None:
    low, high = min(one, other), max(one, other) + 1
    assert low <= SeededRandom(seed).int(low, high) < high


@given(st.text(), st.lists(st.integers(1, 1000), max_size=20))
def test_the_same_seed_gives_the_same_numbers(seed: str, widths: list[int]) -> None:
    first, second = SeededRandom(seed), SeededRandom(seed)
    assert [first.int(0, width) for width in widths] == [second.int(0, width) for width in widths]


@given(st.lists(st.integers(), min_size=1))
def test_a_choice_is_one_of_the_items(items: list[int]) -> None:
    assert SeededRandom("seed").choice(items) in items


def test_the_numbers_of_a_seed_never_change() -> None:
    # A recorded run replays these: another algorithm would be another history.
    random = SeededRandom("turnwright")
    assert [random.int(1, 21) for _ in range(8)] == [18, 4, 14, 11, 14, 20, 9, 7]


def test_every_side_comes_up_about_as_often() -> None:
    random = SeededRandom("fair")
    rolls = [random.int(1, 7) for _ in range(6000)]
    assert all(850 < rolls.count(side) < 1150 for side in range(1, 7))


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (0, 2**64 + 1)])
def test_an_empty_or_too_wide_range_is_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="min < max"):
        SeededRandom("x").int(low, high)


def test_there_is_no_choice_from_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        SeededRandom("x").choice([])
