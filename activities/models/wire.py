"""What every model wire promises, whichever protocol it speaks.

    Wire          one request in, events while it streams, one reply out
    Endpoint      where and as whom
    CallLimits    how long a call may be silent, and how long it may last
    WireError     a call that gave no usable reply

A wire makes exactly one HTTP request per call. Whether to try again is the caller's decision
(DESIGN §4, rule 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kernel.agent.messages import (
    Finished,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    clean_text,
)
from kernel.errors import Code, TurnwrightError

OnEvent = Callable[[TextDelta | ReasoningDelta | ToolCallDelta | Finished], None]


@dataclass(frozen=True)
class Endpoint:
    """A model endpoint for one call. The key never shows in a repr.

    Args:
        base_url: what the protocol's paths are appended to, such as `https://api.example/v1`.
        api_key: sent as a bearer token; empty sends none.
        reasoning_off: body fields that turn the model's thinking off, as this provider spells them.
        strict: whether schemas that strict mode takes are sent with it.
    """

    base_url: str
    api_key: str = field(default="", repr=False)
    reasoning_off: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False


@dataclass(frozen=True)
class CallLimits:
    """Time limits of one call, in seconds.

    Spec: plugin-model §11.2. `first_token_s` runs until the first piece of the answer, `idle_s` between
    bytes after it, `total_s` over the whole call. An unstreamed call knows `total_s` alone.
    """

    first_token_s: float = 120.0
    idle_s: float = 120.0
    total_s: float = 1800.0


DEFAULT_LIMITS = CallLimits()


class Wire(Protocol):
    """One protocol of one family of providers."""

    async def stream(
        self,
        request: ModelRequest,
        endpoint: Endpoint,
        *,
        idempotency_key: str,
        on_event: OnEvent,
        limits: CallLimits = ...,
    ) -> ModelReply:
        """Send one request and return its reply.

        Args:
            request: what to ask.
            endpoint: where to ask it.
            idempotency_key: the same for every attempt that must not be paid twice.
            on_event: called for each event in order, on the event loop; must not block.
            limits: time limits of this attempt.

        Raises:
            WireError: no complete reply came.
        """
        ...


class WireError(TurnwrightError):
    """A model call without a usable reply.

    Args:
        code: one of `model.*`.
        message: the provider's own words where it gave any; whoever raises it bounds them and masks the key.
        retryable: whether another attempt may succeed.
        reason: a finer name than the code: the provider's error type, or one of `connect`, `connection`,
            `incomplete`, `first-token-timeout`, `idle-timeout`, `total-timeout`, `malformed`, `too-large`,
            `key-missing`, `redirect`, `tool-choice`, `refusal`.
        retry_after_s: the provider's hint; None when it gave none.
        shown_text: whether text deltas had already gone out.
        request_id: the provider's id of the request, for its support.
        status: HTTP status; 0 when none came.
        usage: tokens that the failed call reported all the same.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        retryable: bool,
        reason: str = "",
        retry_after_s: float | None = None,
        shown_text: bool = False,
        request_id: str = "",
        status: int = 0,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(code, clean_text(message))
        self.retryable = retryable
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.shown_text = shown_text
        self.request_id = request_id
        self.status = status
        self.usage = usage or Usage()
        self.details = {"reason": reason, "status": status, "request_id": request_id}

    def at(self, place: str) -> WireError:
        """The same error, which says where it happened."""
        return _rebuild(self.code, f"{place}: {self.message}", {name: getattr(self, name) for name in _FACTS})

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.code, self.message, {name: getattr(self, name) for name in _FACTS}))


_FACTS = ("retryable", "reason", "retry_after_s", "shown_text", "request_id", "status", "usage")


def _rebuild(code: Code, message: str, facts: Mapping[str, Any]) -> WireError:
    return WireError(code, message, **facts)
