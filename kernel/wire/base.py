"""The base of every payload: frozen, strict about unknown fields, small when written.

Payloads are written with `exclude_unset`: a field left at its default costs no byte of history.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MAX_TEXT_BYTES = 64 * 1024
"""Longest action text, and largest payload of an action or a run (DESIGN §2)."""

MAX_OUTLINE = 300
"""Longest outline of content that lives in the store (DESIGN §4, rule 1)."""

Json = Any
"""Any JSON value; checked where it is used."""

Outline = Annotated[str, Field(max_length=MAX_OUTLINE)]


class Wire(BaseModel):
    """A payload type."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def outline(text: str) -> str:
    """The first line or so of a text, cut to what history may hold."""
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_OUTLINE else flat[: MAX_OUTLINE - 1] + "…"
