"""Column types that hold the same values in SQLite and PostgreSQL."""

from __future__ import annotations

import json
import re
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Key = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that identifies: compared and sorted by code point on both databases."""


def dumps(value: Any) -> str:
    """Compact JSON with sorted keys.

    Raises:
        ValueError: the value holds NaN or an infinity.
        TypeError: the value is not JSON.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if text.isascii() or not _UNSTORABLE.search(text):
        return text
    # A lone surrogate has no UTF-8 form; only its escape can be stored.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


Wide = Integer().with_variant(BigInteger(), "postgresql")
"""A whole number of up to 64 bits: SQLite has no other."""


class Json(TypeDecorator[Any]):
    """Any JSON value as canonical text. None is stored as `null`; a column left out reads as None too."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        return dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


class Prose(TypeDecorator[str]):
    """Text that people or models wrote. NUL and lone surrogates become U+FFFD: PostgreSQL refuses them."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else _UNSTORABLE.sub("\ufffd", value)
