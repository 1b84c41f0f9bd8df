"""Samples, taken in turns so that a machine's moods hit both sides alike."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

Sample = Callable[[], Awaitable[float]]


@dataclass(frozen=True)
class Series:
    """Values of one side."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)


async def interleaved(sides: Sequence[Sample], *, times: int, warm: int, label: str) -> list[Series]:
    """`times` samples of each side, A B A B, after `warm` of each that do not count."""
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(warm + times):
        progress(f"{label}: {number + 1} of {warm + times}" + (" (warm-up)" if number < warm else ""))
        for index, side in enumerate(sides):
            value = await side()
            if number >= warm:
                taken[index].append(value)
    return [Series(tuple(values)) for values in taken]


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self._start


def progress(line: str) -> None:
    """Tell the person who waits."""
    print(f"{_since.seconds():6.1f} s  {line}", file=sys.stderr, flush=True)


_since = Clock()
