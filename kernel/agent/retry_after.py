"""When a provider says to come back: every spelling of the hint, read without ever raising.

Spec: DECISIONS 10. Seconds, an HTTP or ISO date, a duration such as `6m0s`, or an epoch; a date in the past
means now; a negative or unreadable hint is no hint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DEFAULT_CAP_S = 3600.0
_LONGEST_HINT = 128
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)", re.ASCII)
_UNIT_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

# A number counts as an epoch between 2008 and a year from now; outside, nobody can mean a date by it.
_FIRST_EPOCH_S = 1.2e9
_YEAR_S = 365 * 86400.0


def retry_after_s(hint: str | None, *, now: float, cap_s: float = DEFAULT_CAP_S) -> float | None:
    """Seconds to wait, or None when the hint says nothing usable.

    Args:
        hint: the header's value, in any spelling.
        now: the current time in seconds since 1970.
        cap_s: the longest wait that is believed.
    """
    text = (hint or "").strip()
    if not text or len(text) > _LONGEST_HINT:
        return None
    if _NUMBER.fullmatch(text):
        return _bounded(_from_number(float(text), now), cap_s)
    duration = _from_duration(text)
    return _bounded(_from_date(text, now) if duration is None else duration, cap_s)


def hint_from_headers(
    headers: Mapping[str, str], *, now: float, cap_s: float = DEFAULT_CAP_S
) -> float | None:
    """The first readable hint of a response; header names are matched without regard to case."""
    lower = {name.lower(): value for name, value in headers.items()}
    millis = lower.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(millis) and len(millis) <= _LONGEST_HINT:
        wait = _bounded(float(millis) / 1000, cap_s)
        if wait is not None:
            return wait
    for name in ("retry-after", "x-ratelimit-reset"):
        wait = retry_after_s(lower.get(name), now=now, cap_s=cap_s)
        if wait is not None:
            return wait
    return None


def _bounded(wait: float | None, cap_s: float) -> float | None:
    if wait is None or math.isnan(wait) or wait < 0:
        return None
    return min(abs(wait), cap_s)  # abs: "-0" is zero


def _from_number(number: float, now: float) -> float:
    latest = now + _YEAR_S
    for epoch in (number, number / 1000):
        if _FIRST_EPOCH_S <= epoch <= latest:
            return max(0.0, epoch - now)
    return number


def _from_duration(text: str) -> float | None:
    parts = _DURATION.findall(text)
    if not parts or "".join(value + unit for value, unit in parts) != text:
        return None
    return sum(float(value) * _UNIT_S[unit] for value, unit in parts)


def _from_date(text: str, now: float) -> float | None:
    moment = _http_date(text) or _iso_date(text)
    if moment is None:
        return None
    try:
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)
    except (OverflowError, ValueError):
        return None


def _http_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _iso_date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
