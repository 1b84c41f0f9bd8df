"""Update operations on a record (DECISIONS 19)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.commit.ops import apply_ops
from kernel.commit.proposals import StatePatch
from kernel.errors import Code, TurnwrightError


def patched(record: Any, *ops: dict[str, Any]) -> Any:
    patch = StatePatch.model_validate({"path": "/r", "ops": ops})
    return apply_ops(record, patch.ops)


@pytest.mark.parametrize(
    ("record", "op", "after"),
    [
        (None, {"op": "set", "path": "/a", "value": 1}, {"a": 1}),
        (None, {"op": "set", "path": "/a/b/c", "value": 1}, {"a": {"b": {"c": 1}}}),
        ({"a": 1}, {"op": "set", "value": [1]}, [1]),
        ({"a": [1, 2]}, {"op": "set", "path": "/a/1", "value": 3}, {"a": [1, 3]}),
        (None, {"op": "inc", "path": "/n", "by": 2}, {"n": 2}),
        ({"n": 5}, {"op": "inc", "path": "/n", "by": -5, "min": 0}, {"n": 0}),
        (None, {"op": "append", "path": "/l", "value": 1}, {"l": [1]}),
        ({"l": [1]}, {"op": "append", "path": "/l", "value": 2}, {"l": [1, 2]}),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
        ({"b": 2}, {"op": "remove", "path": "/a/x"}, {"b": 2}),
        ({"l": [1, 2]}, {"op": "remove", "path": "/l/0"}, {"l": [2]}),
        ({"l": [1]}, {"op": "remove", "path": "/l/7"}, {"l": [1]}),
        ({"s": "x"}, {"op": "remove", "path": "/s/deep"}, {"s": "x"}),
        ({"a": 1}, {"op": "remove"}, None),
        (None, {"op": "set", "path": "/a~1b", "value": 1}, {"a/b": 1}),
    ],
)
def test_operation(record: Any, op: dict[str, Any], after: Any) -> None:
    assert patched(record, op) == after


@pytest.mark.parametrize(
    ("record", "op"),
    [
        ({"n": 1}, {"op": "inc", "path": "/n", "by": -2, "min": 0}),
        ({"n": 1}, {"op": "inc", "path": "/n", "by": 2, "max": 2}),
        ({"n": "1"}, {"op": "inc", "path": "/n", "by": 1}),
        ({"n": 1e308}, {"op": "inc", "path": "/n", "by": 1e308}),
        ({"n": 2**53 - 1}, {"op": "inc", "path": "/n", "by": 1}),
        ({"n": True}, {"op": "inc", "path": "/n", "by": 1}),
        ({"l": {}}, {"op": "append", "path": "/l", "value": 1}),
        ({"s": "x"}, {"op": "set", "path": "/s/deep", "value": 1}),
        ({"l": [1]}, {"op": "set", "path": "/l/01", "value": 1}),
        ({"l": [1]}, {"op": "set", "path": "/l/1", "value": 1}),
    ],
)
def test_what_does_not_fit_is_a_conflict(record: Any, op: dict[str, Any]) -> None:
    with pytest.raises(TurnwrightError) as refused:
        patched(record, op)
    assert refused.value.code == Code.COMMIT_CONFLICT


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=4), st.text(max_size=3), st.integers())
def test_the_given_record_is_left_alone(record: dict[str, int], key: str, value: int) -> None:
    before = dict(record)
    path = "/" + key.replace("~", "~0").replace("/", "~1").replace("\0", "")
    if any(ord(char) < 32 for char in path):
        return
    patched(record, {"op": "set", "path": path, "value": value})
    assert record == before
