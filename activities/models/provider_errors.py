"""A provider's refusal, read and classed: whose fault it was and whether to come back.

Spec: plugin-model §11.2 (what is retried), §33. Type, message and request id survive whatever shape the
provider wraps them in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from activities.models.wire import WireError
from kernel.errors import Code

# How different providers say that the request does not fit the model's window.
_OVERFLOW = (
    "context_length_exceeded",
    "prompt is too long",
    "maximum context",
    "context window",
    "exceed_context_size",
    "exceeds the maximum number of tokens",
    "input length and `max_tokens` exceed context limit",
)
_OVERLOADED = ("overloaded", "server_error", "api_error", "internal", "unavailable", "timeout", "bad_gateway")
_RATE = ("rate_limit", "rate limit", "too_many_requests", "resource_exhausted", "throttl")
_AUTH = ("authentication", "permission", "invalid_api_key", "unauthorized", "forbidden")
_REQUEST = ("invalid_request", "not_found", "invalid_argument", "unsupported", "bad_request")
_SPENT = ("insufficient_quota", "billing_hard_limit", "insufficient_balance")


@dataclass(frozen=True)
class ProviderError:
    """What a provider said went wrong; `kind` is its own error type or code, `status` a number it gave."""

    kind: str = ""
    message: str = ""
    request_id: str = ""
    status: int = 0


def read_error(body: Any) -> ProviderError:
    """Find type, message and request id in a parsed body; anything unknown is kept as text."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return ProviderError(message=_text(body))
    inner = body.get("error", body)
    request_id = _text(body.get("request_id"))
    if not isinstance(inner, Mapping):
        return ProviderError(kind=_text(body.get("type")), message=_text(inner), request_id=request_id)
    kinds = [inner.get("type"), inner.get("code"), inner.get("status")]
    numbers = [one for one in kinds if isinstance(one, int) and not isinstance(one, bool)]
    message = inner.get("message") or inner.get("detail") or inner.get("error") or inner
    return ProviderError(
        kind=" ".join(dict.fromkeys(_text(one) for one in kinds if isinstance(one, str) and one)),
        message=_text(message),
        request_id=request_id or _text(inner.get("request_id")),
        status=numbers[0] if numbers else 0,
    )


def parse_error(raw: bytes) -> ProviderError:
    """`read_error` of an undecoded body."""
    text = raw.decode("utf-8", "replace").strip()
    try:
        return read_error(json.loads(text))
    except (ValueError, RecursionError):
        return ProviderError(message=text)


def refused(
    status: int, error: ProviderError, *, retry_after_s: float | None = None, request_id: str = ""
) -> WireError:
    """The error of a response that is no success."""
    code, retryable = _class_of_status(status, error)
    return WireError(
        code,
        error.message or f"The provider answered HTTP {status} without a message",
        retryable=retryable,
        reason=_reason(status, error),
        retry_after_s=retry_after_s if retryable else None,
        request_id=request_id or error.request_id,
        status=status,
    )


def failed_mid_stream(error: ProviderError, *, request_id: str = "") -> WireError:
    """The error of an error object inside a stream that had begun with HTTP 200."""
    if 400 <= error.status <= 599:
        code, retryable = _class_of_status(error.status, error)
    else:
        code, retryable = _class_of_words(error)
    return WireError(
        code,
        error.message or "The provider broke off with an error without a message",
        retryable=retryable,
        reason=error.kind or "provider-error",
        request_id=request_id or error.request_id,
        status=error.status,
    )


def _class_of_status(status: int, error: ProviderError) -> tuple[Code, bool]:
    if status in (401, 402, 403):
        return Code.MODEL_AUTH, False
    if status == 429:
        return Code.MODEL_RATE_LIMIT, not _says(error, _SPENT)
    if _says(error, _OVERFLOW):
        return Code.MODEL_CONTEXT, False
    if status == 408:
        return Code.MODEL_TRANSPORT, True
    if status >= 500:
        return Code.MODEL_OVERLOADED, True
    return Code.MODEL_REQUEST, False


def _class_of_words(error: ProviderError) -> tuple[Code, bool]:
    if _says(error, _OVERFLOW):
        return Code.MODEL_CONTEXT, False
    kind = ProviderError(kind=error.kind)
    if _says(kind, _SPENT):
        return Code.MODEL_RATE_LIMIT, False
    if _says(kind, _RATE):
        return Code.MODEL_RATE_LIMIT, True
    if _says(kind, _OVERLOADED):
        return Code.MODEL_OVERLOADED, True
    if _says(kind, _AUTH):
        return Code.MODEL_AUTH, False
    if _says(kind, _REQUEST):
        return Code.MODEL_REQUEST, False
    return Code.MODEL_OVERLOADED, True


def _reason(status: int, error: ProviderError) -> str:
    if status in (400, 422) and "tool_choice" in f"{error.kind} {error.message}":
        return "tool-choice"
    if 300 <= status < 400:
        return "redirect"
    return error.kind or f"http-{status}"


def _says(error: ProviderError, words: tuple[str, ...]) -> bool:
    text = f"{error.kind} {error.message}".lower()
    return any(word in text for word in words)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
