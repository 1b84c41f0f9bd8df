"""Orders of a graph."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.schedule.order import cycle_path, cycles, topological
from kernel.schedule.reach import Reach

NAMES = [f"n{n}" for n in range(8)]
GRAPHS = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), unique=True, max_size=3))


@pytest.mark.parametrize(
    ("successors", "order", "stuck"),
    [
        ({}, ["a", "b", "c"], []),
        ({"c": ["a"]}, ["b", "c", "a"], []),
        ({"b": ["a"], "c": ["a"]}, ["b", "c", "a"], []),
        ({"a": ["b"], "b": ["a"]}, ["c"], ["a", "b"]),
        ({"a": ["a"], "b": ["c"]}, ["b", "c"], ["a"]),
        ({"a": ["b", "elsewhere"], "elsewhere": ["c"]}, ["a", "b", "c"], []),
    ],
)
def test_ties_go_by_code_point_and_cycles_have_no_order(successors: dict, order: list, stuck: list) -> None:
    assert topological(["c", "a", "b"], successors) == (order, stuck)


def test_code_points_not_locale_decide() -> None:
    assert topological(["ä", "b", "Z", "a"], {})[0] == ["Z", "a", "b", "ä"]


@pytest.mark.parametrize(
    ("successors", "members", "path"),
    [
        ({"a": ["a"]}, ("a",), ("a", "a")),
        ({"a": ["b"], "b": ["a"]}, ("a", "b"), ("a", "b", "a")),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, ("a", "b", "c"), ("a", "c", "b", "a")),
        ({"a": ["b", "c"], "b": ["a"], "c": ["a"]}, ("a", "b", "c"), ("a", "b", "a")),
    ],
)
def test_a_cycle_is_told_as_who_waits_for_whom(successors: dict, members: tuple, path: tuple) -> None:
    assert cycles("abc", successors) == [members]
    assert cycle_path(members, successors) == path


def test_no_cycle_has_no_path() -> None:
    with pytest.raises(ValueError, match="in no cycle"):
        cycle_path(["a"], {})


@given(GRAPHS)
def test_what_has_no_order_is_in_a_cycle_or_behind_one(successors: dict[str, list[str]]) -> None:
    order, stuck = topological(NAMES, successors)
    assert sorted(order + stuck) == NAMES
    place = {node: n for n, node in enumerate(order)}
    assert all(place[up] < place[down] for up in order for down in successors.get(up, ()) if down in place)
    members = {node for found in cycles(NAMES, successors) for node in found}
    assert members <= set(stuck)
    behind = set(members)
    for _ in NAMES:
        behind |= {down for up in behind for down in successors.get(up, ())}
    assert behind == set(stuck)
    for found in cycles(NAMES, successors):
        path = cycle_path(found, successors)
        assert path[0] == path[-1] == found[0]
        assert all(one in successors[other] for one, other in itertools.pairwise(path))


def test_reach_knows_ancestors_and_chains_the_nearest_first() -> None:
    reach = Reach(["a", "b", "c", "d"], {"b": ["a", "elsewhere"], "c": ["b"]})
    assert reach.above("c") == ("a", "b")
    assert reach.above("unknown") == ()
    everybody = sum(reach.bits.values()) & ~reach.bits["d"]
    assert list(reach.connect_behind("d", everybody)) == ["c"]
    assert reach.above("d") == ("a", "b", "c")
    assert list(reach.connect_behind("a", reach.bits["d"])) == []


def test_a_long_chain_needs_no_deep_stack() -> None:
    names = [f"{n:05}" for n in range(5000)]
    successors = {one: [other] for one, other in itertools.pairwise(names)} | {names[-1]: names[:1]}
    assert cycles(names, successors) == [tuple(names)]
