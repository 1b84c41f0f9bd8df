"""What a client refuses before it sends anything: the same words as the session's own refusals."""

from __future__ import annotations

import json

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import MAX_TEXT_BYTES, Json
from kernel.wire.ids import check_id

__all__ = ["check_id", "check_payload", "check_text"]


def check_text(text: str, field: str = "text") -> str:
    """Return text that a session can take.

    Raises:
        TurnwrightError: `wire.too-large` over 64 KiB of UTF-8; `action.invalid` with NUL or lone surrogates.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise TurnwrightError(
            Code.WIRE_TOO_LARGE, f"{field} is too long", accepted=f"at most {MAX_TEXT_BYTES} bytes of UTF-8"
        )
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise TurnwrightError(
            Code.ACTION_INVALID,
            f"{field} holds NUL or lone surrogates",
            accepted="valid Unicode text without NUL",
        )
    return text


def check_payload(payload: Json) -> Json:
    """Return a payload that a session can take.

    Raises:
        TurnwrightError: as `check_text`, or `action.invalid` for what JSON cannot hold.
    """
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise TurnwrightError(
            Code.ACTION_INVALID, f"payload is not JSON: {str(error)[:200]}", accepted="a JSON value"
        ) from None
    check_text(text, "payload")
    return payload
