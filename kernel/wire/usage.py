"""What model calls cost."""

from __future__ import annotations

from kernel.wire.base import Wire


class UsageTotals(Wire):
    """What model calls cost.

    Attributes:
        calls: wire calls sent, failed ones and those of unknown outcome included.
        unknown: calls that were in flight when their worker died.
        input_tokens, output_tokens: as the provider reported them.
        cost_usd: US dollars, of the priced calls.
        unpriced: calls whose slot names no price.
    """

    calls: int = 0
    unknown: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(
            calls=self.calls + other.calls,
            unknown=self.unknown + other.unknown,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=round(self.cost_usd + other.cost_usd, 9),
            unpriced=self.unpriced + other.unpriced,
        )
