"""Turns values into payloads and back; what does not fit is refused by name.

Every refusal is a non-retryable `ApplicationError`, whatever went wrong: the SDK then fails the start,
rejects the update, drops the signal or fails the query, where any other exception would fail the
workflow task and be retried for ever (DESIGN §4, rules 1 and 2).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    EncodingPayloadConverter,
    SerializationContext,
)
from temporalio.exceptions import ApplicationError, FailureError

from kernel.errors import Code
from link.codec import codec, refusal
from link.failures import EncodedWireFailureConverter, WireFailureConverter
from link.payload_shape import largest_part, shape_fault
from link.settings import Settings

MAX_PAYLOAD_BYTES: Final = 256 * 1024
"""Largest payload, before encryption; what is larger lives in the store."""

_MAX_REASONS = 3
_MAX_REASON_CHARS = 600
_JSON = b"json/plain"
_PROTOBUF = (b"json/protobuf", b"binary/protobuf")
"""Answers to the SDK's own queries, which enter no history; a stack trace with sources is large."""


class UnreadableResultError(RuntimeError):
    """An activity's result that the waiting workflow cannot read.

    Not an `ApplicationError`: the result came from a worker of ours, so that another version or a
    missing key is the likely cause. The workflow task waits for a worker that can read it.
    """


class WirePayloadConverter(PydanticPayloadConverter):
    """JSON by pydantic without unset fields, bounded in size and depth, checked against the type."""

    def __init__(self) -> None:
        # The SDK makes several converters for every activity and workflow task: they share what has no state.
        self.converters = _encodings()
        self._results = False

    def with_context(self, context: SerializationContext) -> Self:
        """The same converter, or for an activity's payloads one that tells results from messages."""
        if not isinstance(context, ActivitySerializationContext):
            return self
        converter = type(self)()
        converter._results = True
        return converter

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Encode values.

        Raises:
            ApplicationError: `wire.too-large` with the path of the largest part; `wire.malformed`
                for a value that JSON cannot hold.
        """
        return [self._encode(value) for value in values]

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Decode values.

        Raises:
            ApplicationError: `wire.malformed`, `wire.too-large` or a `codec.*` code, with what was
                expected and where.
            UnreadableResultError: the same of an activity's result.
        """
        try:
            return self._decode_all(payloads, type_hints)
        except ApplicationError as error:
            if self._results:
                raise UnreadableResultError(f"{error.type}: {error.message}") from error
            raise

    def _encode(self, value: Any) -> Payload:
        try:
            [payload] = super().to_payloads([value])
        except FailureError:
            raise
        except Exception as error:  # whatever pydantic says, the caller must not retry it
            refuse(
                Code.WIRE_MALFORMED, f"{type(value).__name__} cannot be written as JSON: {str(error)[:200]}"
            )
        if _encoding(payload) in _PROTOBUF:
            return payload
        if len(payload.data) > MAX_PAYLOAD_BYTES:
            part = largest_part(value, payload.data)
            size = f"{len(payload.data)} bytes; at most {MAX_PAYLOAD_BYTES} are accepted"
            refuse(Code.WIRE_TOO_LARGE, f"{part} makes a payload of {size}")
        if _encoding(payload) == _JSON and (fault := shape_fault(payload.data)):
            refuse(Code.WIRE_MALFORMED, f"{type(value).__name__} {fault}")
        return payload

    def _decode_all(self, payloads: Sequence[Payload], type_hints: list[type] | None) -> list[Any]:
        if type_hints is None:
            if len(payloads) > 1:
                refuse(Code.WIRE_MALFORMED, f"{len(payloads)} arguments given where at most one is taken")
            return [self._decode(payload, None, 0) for payload in payloads]
        if len(type_hints) != len(payloads):
            refuse(Code.WIRE_MALFORMED, f"{len(payloads)} arguments given where {len(type_hints)} are taken")
        return [
            self._decode(p, hint, i) for i, (p, hint) in enumerate(zip(payloads, type_hints, strict=True))
        ]

    def _decode(self, payload: Payload, hint: Any, index: int) -> Any:
        if hint is RawValue:
            return RawValue(payload)
        if refused := refusal(payload):
            refuse(*refused)
        where = f"argument {index + 1}" + ("" if hint is None else f", expected {type_name(hint)}")
        self._refuse_unreadable(payload, where)
        try:
            [value] = super().from_payloads([payload], None if hint is None else [hint])
            if hint is None or _encoding(payload) == _JSON:
                return value
            return adapter(hint).validate_python(value, strict=True)  # other encodings know no types
        except ValidationError as error:
            refuse(Code.WIRE_MALFORMED, f"{where}: {reasons(error)}")
        except Exception as error:  # a decoder's own exceptions: recursion, protobuf, hints without a schema
            refuse(Code.WIRE_MALFORMED, f"{where}: {type(error).__name__}: {str(error)[:200]}")

    def _refuse_unreadable(self, payload: Payload, where: str) -> None:
        encoding, size = _encoding(payload), len(payload.data)
        if encoding not in self.converters:
            known = ", ".join(name.decode() for name in self.converters)
            refuse(Code.WIRE_MALFORMED, f"{where}: unknown encoding {encoding[:40]!r}; known are {known}")
        if size > MAX_PAYLOAD_BYTES and encoding not in _PROTOBUF:
            refuse(Code.WIRE_TOO_LARGE, f"{where}: {size} bytes given, {MAX_PAYLOAD_BYTES} accepted")
        if encoding == _JSON and (fault := shape_fault(payload.data)):
            refuse(Code.WIRE_MALFORMED, f"{where}: JSON {fault}")


class WireDataConverter(DataConverter):
    """The converter of one deployment, which makes the one for activities once, not for each of them."""

    def with_context(self, context: SerializationContext) -> Self:
        """This converter, or for an activity's payloads the one that tells results from messages."""
        return self._of_activities if isinstance(context, ActivitySerializationContext) else self

    @functools.cached_property
    def _of_activities(self) -> Self:
        return super().with_context(_AN_ACTIVITY)


_AN_ACTIVITY = ActivitySerializationContext(
    namespace="",
    activity_id=None,
    activity_type=None,
    activity_task_queue=None,
    workflow_id=None,
    workflow_type=None,
    is_local=False,
)


@functools.cache
def _encodings() -> Mapping[bytes, EncodingPayloadConverter]:
    return PydanticPayloadConverter(ToJsonOptions(exclude_unset=True)).converters


def data_converter(settings: Settings) -> DataConverter:
    """The converter that every client and worker of a deployment must share.

    Raises:
        TurnwrightError: `config.encryption-key` when encryption is on and a key is missing.
    """
    encryption = codec(settings)
    failures = WireFailureConverter if encryption is None else EncodedWireFailureConverter
    return WireDataConverter(
        payload_converter_class=WirePayloadConverter,
        payload_codec=encryption,
        failure_converter_class=failures,
    )


@functools.lru_cache(maxsize=256)
def adapter(hint: Any) -> TypeAdapter[Any]:
    """The validator of a type."""
    try:
        return TypeAdapter(hint)
    except PydanticSchemaGenerationError:  # a class that pydantic does not know: an instance of it will do
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def reasons(error: ValidationError) -> str:
    """What a validation found, without the values it found: they may be large or secret."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [_reason(fault["loc"], fault["msg"]) for fault in faults[:_MAX_REASONS]]
    more = [f"{len(faults) - _MAX_REASONS} more"] if len(faults) > _MAX_REASONS else []
    return "; ".join(lines + more)[:_MAX_REASON_CHARS]


def type_name(hint: Any) -> str:
    """A type as people write it."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _encoding(payload: Payload) -> bytes:
    return payload.metadata.get("encoding", b"")


def refuse(code: Code, message: str) -> NoReturn:
    """Raise the refusal that no retry can mend."""
    raise ApplicationError(f"{code}: {message}", type=code, non_retryable=True) from None


def _reason(loc: tuple[int | str, ...], message: str) -> str:
    path = ".".join(str(part)[:60] for part in loc)
    return f"{path}: {message}" if path else message
