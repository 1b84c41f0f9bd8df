"""What a client refuses before it sends anything: the same words as the session's own refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kernel.errors import Code, TurnwrightError
from kernel.wire.base import MAX_TEXT_BYTES, Json
from kernel.wire.ids import check_id
from link.converter import reasons

__all__ = ["built", "check_id", "check_payload", "check_text", "placed"]

M = TypeVar("M", bound=BaseModel)


@contextmanager
def placed(workflow_id: str) -> Iterator[None]:
    """Let a refusal of this module say whom the message was for."""
    try:
        yield
    except TurnwrightError as error:
        error.where = error.where or workflow_id
        raise


def built(message: type[M], fields: dict[str, Any]) -> M:
    """A message of these fields; those that are None are left out.

    Raises:
        TurnwrightError: `wire.malformed`, naming the field.
    """
    try:
        return message.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        what = f"{message.__name__}: {reasons(error)}"
        raise TurnwrightError(Code.WIRE_MALFORMED, what) from None


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
