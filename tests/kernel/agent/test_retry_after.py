"""Every spelling of a retry hint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.agent.retry_after import DEFAULT_CAP_S, hint_from_headers, retry_after_s

NOW = 1_750_000_000.0  # 2025-06-15 15:06:40 UTC


@pytest.mark.parametrize(
    ("hint", "wait"),
    [
        ("0", 0.0),
        ("20", 20.0),
        (" 1.5 ", 1.5),
        ("6m0s", 360.0),
        ("1m30.5s", 90.5),
        ("250ms", 0.25),
        ("1h", 3600.0),
        ("Sun, 15 Jun 2025 15:07:10 GMT", 30.0),
        ("Sunday, 15-Jun-25 15:07:10 GMT", 30.0),
        ("2025-06-15T15:07:10Z", 30.0),
        ("2025-06-15T17:07:10+02:00", 30.0),
        ("1750000045", 45.0),
        ("1750000045000", 45.0),
        ("1749999999", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_readable_hints(hint: str, wait: float) -> None:
    assert retry_after_s(hint, now=NOW) == pytest.approx(wait)


@pytest.mark.parametrize(
    "hint",
    [
        None,
        "",
        " ",
        "-1",
        "-6m",
        "nan",
        "inf",
        "-inf",
        "soon",
        "6 minutes",
        "1_0",
        "٣",
        "0x10",
        "Wed, 99 Oct",
    ],
)
def test_unreadable_and_negative_hints_are_none(hint: str | None) -> None:
    assert retry_after_s(hint, now=NOW) is None


@pytest.mark.parametrize("hint", ["1e9", "1e300", "1e999", "9" * 100, "99d", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_absurd_hints_are_capped(hint: str) -> None:
    assert retry_after_s(hint, now=NOW) == DEFAULT_CAP_S
    assert retry_after_s(hint, now=NOW, cap_s=7) == 7


@given(st.text(max_size=200), st.floats(0, 4e9))
def test_no_hint_ever_raises(hint: str, now: float) -> None:
    wait = retry_after_s(hint, now=now)
    assert wait is None or 0 <= wait <= DEFAULT_CAP_S


def test_headers_in_order_of_exactness() -> None:
    headers = {"Retry-After-Ms": "1500", "Retry-After": "2", "X-RateLimit-Reset": "1750000045000"}
    assert hint_from_headers(headers, now=NOW) == 1.5
    assert hint_from_headers({**headers, "Retry-After-Ms": "nan"}, now=NOW) == 2
    assert hint_from_headers({"X-RateLimit-Reset": "1750000045000"}, now=NOW) == 45
    assert hint_from_headers({}, now=NOW) is None
