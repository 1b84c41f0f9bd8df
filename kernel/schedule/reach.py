"""Which node lies above which: ancestors as bit sets, so that a thousand nodes cost little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class Reach:
    """The ancestors of every node of a graph.

    A set of nodes is an integer: bit n stands for the n-th node by code point.

    Args:
        order: the nodes, topologically sorted; members of cycles, which never run, in any place.
        upstreams: direct upstreams of each; upstreams outside `order` are left out.
    """

    def __init__(self, order: Sequence[str], upstreams: Mapping[str, Iterable[str]]) -> None:
        self._names = sorted(order)
        self.bits = {name: 1 << place for place, name in enumerate(self._names)}
        self._above: dict[str, int] = {}
        for node in order:
            self._above[node] = self._gather(upstreams.get(node, ()))

    def _gather(self, upstreams: Iterable[str]) -> int:
        bits = 0
        for upstream in upstreams:
            if upstream in self.bits:
                bits |= self.bits[upstream] | self._above.get(upstream, 0)
        return bits

    def above(self, node: str, among: int = -1) -> tuple[str, ...]:
        """The ancestors of a node, by code point; `among` leaves only those of a set."""
        names: list[str] = []
        rest = self._above.get(node, 0) & among
        while rest:
            names.append(self._names[rest.bit_length() - 1])
            rest ^= 1 << (rest.bit_length() - 1)
        return tuple(reversed(names))

    def connect_behind(self, node: str, others: int) -> Iterable[str]:
        """Put a node behind those of `others` that no path connects it with, the nearest first.

        Nearest first, a run of nodes becomes a chain and not every pair of it.

        Yields:
            Each node that it was put behind.
        """
        rest = others & ~self._above[node]
        while rest:
            place = rest.bit_length() - 1
            rest ^= 1 << place
            other = self._names[place]
            if self._above[other] & self.bits[node]:
                continue
            self._connect(other, node)
            rest &= ~self._above[node]
            yield other

    def _connect(self, first: str, second: str) -> None:
        gained = self._above[first] | self.bits[first]
        bit = self.bits[second]
        for node, above in self._above.items():
            if node == second or above & bit:
                self._above[node] = above | gained
