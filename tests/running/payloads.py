"""Ten ways to fill a message wrongly, and what a plain client needs to send them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.client import (
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from kernel.errors import Code
from link.codec import EncryptionCodec, Key

OTHER_KEY = Key.of(b"another key of thirty-two bytes!")
_BLOB = "Blob data size exceeds limit."
REFUSED_BY_SERVER = "larger than the server takes"

Good = Mapping[str, Any] | None
"""What a message takes, as plain JSON; None for a query without arguments."""


def plain(value: Any) -> Payload:
    """A value as any client's JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return Payload(metadata={"encoding": b"json/plain"}, data=text.encode())


def malformed(good: Good) -> dict[str, tuple[list[Payload], set[str]]]:
    """What is sent instead of `good` → the codes its sender may get to see."""
    first = plain(dict(good)) if good is not None else plain({})
    wrong = {Code.WIRE_MALFORMED.value}
    bad: dict[str, tuple[list[Payload], set[str]]] = {
        "null": ([Payload(metadata={"encoding": b"binary/null"})], wrong),
        "too many": ([first, first, first], wrong),
        "wrong type": ([plain(5)], wrong),
        "bytes": ([Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\xff")], wrong),
        "deep": ([plain("[" * 5_000 + "]" * 5_000)], wrong),
        "lone surrogate": ([plain(_surrogate(good))], wrong | {Code.ACTION_INVALID.value}),
        "3 MiB": ([plain('{"text": "' + "x" * (3 * 2**20) + '"}')], {REFUSED_BY_SERVER}),
        "1 MB": ([plain('{"text": "' + "x" * 1_000_000 + '"}')], wrong | {Code.WIRE_TOO_LARGE.value}),
    }
    if good is not None:
        bad["none"] = ([], wrong)
    return bad


async def keyed(payloads: list[Payload], codec: EncryptionCodec | None) -> list[Payload]:
    """The payloads as a side with this key would send them."""
    return payloads if codec is None else await codec.encode(payloads)


async def crossed(good: Good, codec: EncryptionCodec | None) -> dict[str, tuple[list[Payload], set[str]]]:
    """Payloads of a side whose encryption does not fit this one's."""
    fine = plain(dict(good) if good is not None else {})
    [sealed] = await EncryptionCodec([OTHER_KEY]).encode([fine])
    if codec is None:
        return {"encrypted": ([sealed], {Code.CODEC_ENCRYPTED.value, Code.WIRE_MALFORMED.value})}
    return {
        "unencrypted": ([fine], {Code.CODEC_PLAINTEXT.value, Code.WIRE_MALFORMED.value}),
        "another key": ([sealed], {Code.CODEC_KEY.value, Code.WIRE_MALFORMED.value}),
    }


async def table(good: Good, codec: EncryptionCodec | None) -> dict[str, tuple[list[Payload], set[str]]]:
    """Every row, ready to be sent by a client without a codec."""
    rows = {name: (await keyed(bad, codec), codes) for name, (bad, codes) in malformed(good).items()}
    return {**rows, **await crossed(good, codec)}


def raw(payloads: list[Payload]) -> list[RawValue]:
    """Arguments that a plain client sends as these very payloads."""
    return [RawValue(payload) for payload in payloads]


async def code_of(call: Awaitable[object]) -> str:
    """The code that a refused call ends with; empty when it was not refused."""
    try:
        await call
    except (WorkflowUpdateFailedError, WorkflowFailureError) as error:
        cause = error.cause
        return (cause.type or "no type") if isinstance(cause, ApplicationError) else repr(cause)
    except WorkflowQueryFailedError as error:
        return REFUSED_BY_SERVER if str(error) == _BLOB else str(error).partition(":")[0]
    except RPCError as error:
        return REFUSED_BY_SERVER if "size" in error.message.lower() else error.message
    return ""


def _surrogate(good: Good) -> str:
    """The good JSON with a lone surrogate in its first text."""
    if good is None:
        return '"\\ud800"'
    name = next(key for key, value in good.items() if isinstance(value, str))
    return json.dumps(dict(good) | {name: "\ud800x"})
