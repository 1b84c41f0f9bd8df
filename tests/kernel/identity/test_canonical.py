"""Canonical JSON. RFC 8785."""

from __future__ import annotations

import json
import math

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from kernel.errors import Code, TurnwrightError
from kernel.identity.canonical import MAX_DEPTH, canonical_json

SAFE = 2**53 - 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ({"b": 1, "a": [1.0, 1.5, -0.0, 1e21, 1e-7, 100.0]}, '{"a":[1,1.5,0,1e+21,1e-7,100],"b":1}'),
        ('€$\u000f\nA\'B"\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\"/"'),
        ({"\ue000": 1, "\U00010000": 2}, '{"\U00010000":2,"\ue000":1}'),
        ((1, ()), "[1,[]]"),
        ({}, "{}"),
        (2**64 + 1, "18446744073709551617"),
        (333333333.33333329, "333333333.3333333"),
    ],
)
def test_one_text_for_one_value(value: object, text: str) -> None:
    assert canonical_json(value) == text


def test_large_integers_stay_apart() -> None:
    assert canonical_json(2**53) != canonical_json(2**53 + 1)


@pytest.mark.parametrize(
    ("value", "where", "what"),
    [
        ({"a": [0, math.nan]}, "/a/1", "nan"),
        (math.inf, "the value", "inf"),
        ({"a/b": {"c~": "\ud800"}}, "/a~1b/c~0", "lone surrogate"),
        ({"\udc00": 1}, "the value", "lone surrogate"),
        ({"a": {1: 2}}, "/a", "no string"),
        ({"a": {1, 2}}, "/a", "set is no JSON"),
        pytest.param(10**5000, "the value", "digits", id="long"),
    ],
)
def test_what_has_no_canonical_text_is_refused_with_its_place(value: object, where: str, what: str) -> None:
    with pytest.raises(TurnwrightError, match=what) as refusal:
        canonical_json(value)
    assert refusal.value.code == Code.WIRE_MALFORMED
    assert refusal.value.where == where


@pytest.mark.parametrize("around", [lambda v: [v], lambda v: {"a": v}])
def test_nesting_is_bounded(around) -> None:
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = around(value)
    assert canonical_json(value)
    for _ in range(100_000):
        value = around(value)
    with pytest.raises(TurnwrightError, match="nesting"):
        canonical_json(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_it_agrees_with_the_library_and_reads_back(value: object) -> None:
    text = canonical_json(value)
    assert text.encode() == rfc8785.dumps(value)
    assert canonical_json(json.loads(text)) == text
