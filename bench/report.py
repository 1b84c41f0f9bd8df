"""What a run found: a table for people, JSON for programs, and the targets beside the values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.measure import Series


@dataclass(frozen=True)
class Row:
    """One measured thing.

    Attributes:
        product, reference: samples of either side; no reference where there is nothing to compare with.
        unit: of the values, such as ms or turns/s.
        limit: the most, or with `higher` the least, that the judged value may be.
        aim: what we would rather have.
        of_ratio: whether limit and aim are about product ÷ reference, not about the product's value.
    """

    name: str
    unit: str
    product: Series
    reference: Series | None = None
    limit: float | None = None
    aim: float | None = None
    higher: bool = False
    of_ratio: bool = True

    @property
    def ratio(self) -> float | None:
        """Product ÷ reference, of the medians."""
        return self.product.median / self.reference.median if self.reference else None

    @property
    def judged(self) -> float | None:
        """The value that the target is about."""
        return self.ratio if self.of_ratio else self.product.median

    @property
    def met(self) -> bool | None:
        """Whether the limit is kept; None without one."""
        if self.limit is None or self.judged is None:
            return None
        return self.judged >= self.limit if self.higher else self.judged <= self.limit


def table(rows: Sequence[Row]) -> str:
    """Every row, then the targets."""
    head = ["", "unit", "product", "(min-max)", "reference", "(min-max)", "ratio"]
    body = [_cells(row) for row in rows]
    targets = [["target", "limit", "aim", "measured", ""], *(_target(row) for row in rows if row.limit)]
    parts = [_aligned([head, *body])]
    if len(targets) > 1:
        parts.append(_aligned(targets))
    return "\n\n".join(parts)


def as_json(rows: Sequence[Row]) -> str:
    """Every row with its samples."""
    listed = [
        {
            **asdict(row),
            "product": _series(row.product),
            "reference": _series(row.reference) if row.reference else None,
            "ratio": row.ratio,
            "met": row.met,
        }
        for row in rows
    ]
    return json.dumps({"rows": listed}, indent=2)


def _series(series: Series) -> dict[str, object]:
    return {"median": series.median, "min": series.low, "max": series.high, "values": series.values}


def _cells(row: Row) -> list[str]:
    reference = [_number(row.reference.median), _spread(row.reference)] if row.reference else ["", ""]
    ratio = f"{row.ratio:.2f}×" if row.ratio is not None else ""
    return [row.name, row.unit, _number(row.product.median), _spread(row.product), *reference, ratio]


def _target(row: Row) -> list[str]:
    assert row.limit is not None
    assert row.judged is not None
    sign, unit = "≥" if row.higher else "≤", "×" if row.of_ratio else f" {row.unit}"
    aim = f"{sign} {row.aim:,g}{unit}" if row.aim is not None else ""
    measured = f"{row.judged:.2f}×" if row.of_ratio else f"{_number(row.judged)}{unit}"
    return [row.name, f"{sign} {row.limit:,g}{unit}", aim, measured, "kept" if row.met else "MISSED"]


def _spread(series: Series) -> str:
    return "" if len(series.values) == 1 else f"({_number(series.low)}-{_number(series.high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.1f}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    shown = []
    for line in lines:
        first, *others = line
        cells = [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(others, widths[1:], strict=True))]
        shown.append("  ".join(cells).rstrip())
    return "\n".join(shown)
