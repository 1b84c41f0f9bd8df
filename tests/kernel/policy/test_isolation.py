"""Levels of isolation, and who may run."""

from __future__ import annotations

from itertools import combinations

import pytest

from kernel.errors import Code
from kernel.policy import LAYERS, LEVELS, Layer, Level, admits, level_of, not_admitted, suffices


@pytest.mark.parametrize(
    ("applied", "level"),
    [
        ((), "process"),
        (("limits",), "process"),
        (("limits", "privileges"), "process"),
        (("files",), "partial"),
        (("system-calls",), "partial"),
        (("limits", "files", "system-calls"), "partial"),
        (tuple(LAYERS), "sealed"),
    ],
)
def test_a_level_is_what_its_layers_make(applied: tuple[Layer, ...], level: Level) -> None:
    assert level_of(applied) == level


def test_a_layer_more_never_lowers_the_level() -> None:
    sets = [set(found) for size in range(len(LAYERS) + 1) for found in combinations(LAYERS, size)]
    for few in sets:
        for more in sets:
            assert not few <= more or suffices(level_of(more), level_of(few))


def test_a_level_suffices_for_itself_and_every_weaker_one() -> None:
    found = [[suffices(level, minimum) for minimum in LEVELS] for level in LEVELS]
    assert found == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize(
    ("bundled", "has_code", "granted", "may"),
    [
        (True, True, False, True),
        (False, False, False, True),
        (False, True, True, True),
        (False, True, False, False),
    ],
)
def test_code_runs_when_it_is_ours_or_approved(
    bundled: bool, has_code: bool, granted: bool, may: bool
) -> None:
    assert admits(bundled=bundled, has_code=has_code, granted=granted) == may


def test_the_refusal_says_what_to_type() -> None:
    error = not_admitted("omens", "s1")
    assert error.code == Code.PACKAGE_APPROVAL
    assert error.accepted == "`turnwright package approve omens --session s1`, after reading it"
