"""Random numbers that a retried run draws again.

Own arithmetic over SHA-256, so that the numbers depend on the seed alone and on no Python version.
"""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")
_SPAN = 1 << 64


class SeededRandom:
    """`ctx.random`: the same seed gives the same numbers in the same order (DECISIONS 16).

    Args:
        seed: any text; the host makes it from turn and runtime.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode("utf-8", "surrogatepass")
        self._drawn = 0

    def int(self, min: builtins.int, max: builtins.int) -> builtins.int:
        """A uniform integer `n` with `min <= n < max`.

        Raises:
            ValueError: the range is empty, or wider than 2^64.
        """
        width = max - min
        if not 0 < width <= _SPAN:
            raise ValueError(f"random.int needs min < max, at most 2^64 apart; got {min} and {max}")
        # The incomplete last run of the span is drawn again: it would favour the low numbers.
        fair = _SPAN - _SPAN % width
        while (drawn := self._draw()) >= fair:
            pass
        return min + drawn % width

    def choice(self, items: Sequence[Item]) -> Item:
        """One of `items`, each as likely as the others.

        Raises:
            ValueError: there is nothing to choose from.
        """
        if not items:
            raise ValueError("random.choice needs at least one item")
        return items[self.int(0, len(items))]

    def _draw(self) -> builtins.int:
        block = self._seed + b"\0" + str(self._drawn).encode()
        self._drawn += 1
        return builtins.int.from_bytes(hashlib.sha256(block).digest()[:8], "big")
