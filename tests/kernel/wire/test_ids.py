"""Workflow ids print and parse as inverses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.errors import Code, TurnwrightError
from kernel.wire.ids import (
    MAX_ID_BYTES,
    agent_workflow,
    check_id,
    job_workflow,
    parse_workflow_id,
    session_workflow,
    turn_id_for,
    turn_workflow,
)

segments = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=40)


@given(segments, segments, segments)
def test_parse_is_the_inverse_of_print(one: str, two: str, three: str) -> None:
    for printed, kind, parts in (
        (session_workflow(one), "session", (one,)),
        (turn_workflow(one, two), "turn", (one, two)),
        (agent_workflow(one, two), "agent", (one, two)),
        (agent_workflow(one, two, three), "agent", (one, two, three)),
        (job_workflow(one), "job", (one,)),
    ):
        assert parse_workflow_id(printed) == (kind, parts)


@given(segments, segments)
def test_two_ids_never_print_alike(one: str, two: str) -> None:
    assert (turn_workflow(one, two) == turn_workflow(two, one)) == (one == two)


@pytest.mark.parametrize(
    "foreign", ["", "session", "session/", "order/1", "turn/a", "turn/a/b/c", "session/a b", "job/%zz"]
)
def test_a_foreign_id_is_no_reference(foreign: str) -> None:
    assert parse_workflow_id(foreign) is None


@pytest.mark.parametrize("bad", ["", " a", "a\n", "a" * (MAX_ID_BYTES + 1), "\udc00", "é" * 40])
def test_an_unusable_id_is_refused_by_name(bad: str) -> None:
    with pytest.raises(TurnwrightError) as refused:
        check_id(bad, "session_id")
    assert refused.value.code == Code.SESSION_ID
    assert "session_id" in str(refused.value)


def test_a_turn_is_known_by_session_and_action() -> None:
    assert turn_id_for("s", "a") == turn_id_for("s", "a")
    assert len({turn_id_for("s", "a"), turn_id_for("s", "b"), turn_id_for("sa", "")}) == 3
