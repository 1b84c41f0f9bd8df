"""Turns exceptions into failures that always fit: bounded, printable, and readable on the other side.

An exception while a failure is converted fails the workflow task or hides what happened, so nothing
here raises for what the failure holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import ApplicationError, FailureError

from kernel.errors import Code

MAX_MESSAGE_CHARS: Final = 2_000
MAX_TRACE_CHARS: Final = 4_000
"""The server cuts an activity's failure at 4 KiB in all; the end of a trace says the most."""

_CODES: Final = frozenset(Code)
_KEYLESS: Final = frozenset({Code.CODEC_PLAINTEXT, Code.CODEC_KEY})
_DEFECTS: Final = frozenset({Code.INTERNAL, Code.WORKFLOW_FAILED})


class WireFailureConverter(DefaultFailureConverter):
    """Failures with a bounded message, and a stack trace only where there was a defect."""

    encoded: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=False)

    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        """Convert an exception; what cannot be written is left out rather than raised."""
        exception = _refusal_inside(exception)
        details = _LenientDetails.over(payload_converter)
        try:
            super().to_failure(exception, details, failure)
        except (ValueError, TypeError):  # lone surrogates: protobuf takes no such text
            failure.Clear()
            super().to_failure(_plain(exception), details, failure)
        failure.message = _head(failure.message, MAX_MESSAGE_CHARS)
        failure.stack_trace = "" if _is_refusal(exception) else failure.stack_trace[-MAX_TRACE_CHARS:]
        if self.encoded and not _for_strangers(exception):
            _encode(failure, details)  # a failure from elsewhere, too: its message was decoded on the way in

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """Convert a failure; details that cannot be read say so in their place."""
        return super().from_failure(failure, _LenientDetails.over(payload_converter))


class EncodedWireFailureConverter(WireFailureConverter):
    """The same with message and stack trace as a payload, so that the codec encrypts them."""

    encoded = True


class _LenientDetails(PayloadConverter):
    """The payload converter for what a failure carries: a refusal stands where its value would."""

    def __init__(self, inner: PayloadConverter) -> None:
        self._inner = inner

    @classmethod
    def over(cls, inner: PayloadConverter) -> PayloadConverter:
        return inner if isinstance(inner, cls) else cls(inner)

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        return [self._write(value) for value in values]

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        hints: Sequence[type | None] = type_hints or [None] * len(payloads)
        return [self._read(payload, hint) for payload, hint in zip(payloads, hints, strict=True)]

    def _write(self, value: Any) -> Payload:
        try:
            [payload] = self._inner.to_payloads([value])
        except FailureError as error:
            [payload] = self._inner.to_payloads([_clean(f"left out: {error.message}")])
        return payload

    def _read(self, payload: Payload, hint: Any) -> Any:
        try:
            [value] = self._inner.from_payloads([payload], None if hint is None else [hint])
        except (FailureError, RuntimeError) as error:
            return {"message": f"unreadable here: {error}"}
        return value


def _refusal_inside(exception: BaseException) -> BaseException:
    """The refusal of ours that the SDK wrapped into a retryable 'Failed decoding arguments'."""
    cause = exception.__cause__
    if isinstance(exception, ApplicationError) and exception.type is None:
        while cause is not None and not isinstance(cause, ApplicationError):
            cause = cause.__cause__
        if isinstance(cause, ApplicationError) and _is_refusal(cause):
            return cause
    return exception


def _is_refusal(exception: BaseException) -> bool:
    if not isinstance(exception, ApplicationError) or exception.failure is not None:
        return False
    return exception.type in _CODES and exception.type not in _DEFECTS


def _for_strangers(exception: BaseException) -> bool:
    """Whether the failure tells a side without the key that it lacks the key; it could not read a secret."""
    return isinstance(exception, ApplicationError) and exception.type in _KEYLESS


def _plain(exception: BaseException) -> ApplicationError:
    inner = exception if isinstance(exception, ApplicationError) else None
    return ApplicationError(
        _clean(str(exception)),
        type=inner.type if inner else type(exception).__name__,
        non_retryable=inner.non_retryable if inner else False,
    )


def _encode(failure: Failure, converter: PayloadConverter) -> None:
    common = {"message": failure.message, "stack_trace": failure.stack_trace}
    failure.encoded_attributes.CopyFrom(converter.to_payloads([common])[0])
    code = failure.application_failure_info.type
    # A query's failure travels as this text alone; other failures show their type in plain, too.
    failure.message = f"{code}: encrypted" if code in _CODES else "Encoded failure"
    failure.stack_trace = ""


def _head(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
