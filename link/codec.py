"""Encrypts every payload with AES-GCM, and says by name when one cannot be read.

Decoding never raises: an exception in a codec fails the workflow task, and Temporal would retry it for
ever. A payload that must not pass becomes a marker instead, and `link.converter` refuses the marker.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from kernel.errors import Code, TurnwrightError
from link.settings import Settings

ENCRYPTED: Final = b"binary/encrypted"
REFUSED: Final = b"turnwright/refused"
KEY_BYTES: Final = 32
_KEY_ID = "encryption-key-id"
_NONCE_BYTES = 12


class Key(NamedTuple):
    """A key and its id, which is a digest of it: both sides agree without naming anything."""

    id: str
    secret: bytes

    @classmethod
    def of(cls, secret: bytes) -> Key:
        """The key with these 32 bytes."""
        return cls(hashlib.sha256(b"turnwright key id\0" + secret).hexdigest()[:12], secret)


class EncryptionCodec(PayloadCodec):
    """AES-256-GCM over the whole payload, its metadata included.

    Args:
        keys: the first encrypts; all of them decrypt, so that a key can be replaced while
            payloads of the old one are still in histories.
        nonce: source of 12 random bytes.
    """

    def __init__(self, keys: Sequence[Key], *, nonce: Callable[[int], bytes] = os.urandom) -> None:
        self._current = keys[0]
        self._ciphers = {key.id: AESGCM(key.secret) for key in keys}
        self._nonce = nonce

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypt; what is encrypted already stays as it is."""
        return [p if _encoding(p) == ENCRYPTED else self._encrypt(p) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt, or put a marker where a payload cannot be read. Never raises."""
        return [self._decrypt(payload) for payload in payloads]

    def _encrypt(self, payload: Payload) -> Payload:
        nonce, key_id = self._nonce(_NONCE_BYTES), self._current.id.encode()
        sealed = self._ciphers[self._current.id].encrypt(nonce, payload.SerializeToString(), key_id)
        return Payload(metadata={"encoding": ENCRYPTED, _KEY_ID: key_id}, data=nonce + sealed)

    def _decrypt(self, payload: Payload) -> Payload:
        if _encoding(payload) != ENCRYPTED:
            return _refused(Code.CODEC_PLAINTEXT, "the payload is not encrypted, and encryption is on here")
        key_id = payload.metadata.get(_KEY_ID, b"")
        cipher = self._ciphers.get(key_id.decode("ascii", "replace"))
        if cipher is None:
            return _refused(
                Code.CODEC_KEY, f"encrypted with the key {key_id[:24]!r}; known here: {self._known()}"
            )
        nonce, sealed = payload.data[:_NONCE_BYTES], payload.data[_NONCE_BYTES:]
        try:
            return Payload.FromString(cipher.decrypt(nonce, sealed, key_id))
        except (InvalidTag, ValueError, DecodeError):
            return _refused(Code.CODEC_KEY, "cut short, altered, or encrypted with another key")

    def _known(self) -> str:
        return ", ".join(self._ciphers)


def codec(settings: Settings, environ: Mapping[str, str] | None = None) -> EncryptionCodec | None:
    """The codec that the settings ask for, or None where encryption is off.

    Raises:
        TurnwrightError: `config.encryption-key` when a variable is unset or holds no key.
    """
    names = settings.encryption
    if names.key_env is None:
        return None
    environ = os.environ if environ is None else environ
    return EncryptionCodec([_read_key(name, environ) for name in (names.key_env, *names.previous_key_envs)])


def refusal(payload: Payload) -> tuple[Code, str] | None:
    """What a marker says: the code and the reason; None for any other payload."""
    encoding = _encoding(payload)
    if encoding == ENCRYPTED:
        return Code.CODEC_ENCRYPTED, "the payload is encrypted, and encryption is off here"
    if encoding != REFUSED:
        return None
    try:
        code, reason = json.loads(payload.data)
        return Code(code), str(reason)
    except (ValueError, TypeError):
        return Code.WIRE_MALFORMED, "a refusal marker that this side did not write"


def _read_key(name: str, environ: Mapping[str, str]) -> Key:
    accepted = f"base64 of {KEY_BYTES} random bytes, as `openssl rand -base64 {KEY_BYTES}` prints"
    value = environ.get(name, "").strip()
    if not value:
        raise TurnwrightError(
            Code.CONFIG_ENCRYPTION_KEY, "the variable is not set", where=name, accepted=accepted
        )
    try:
        secret = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != KEY_BYTES:
        raise TurnwrightError(
            Code.CONFIG_ENCRYPTION_KEY, "the variable holds no usable key", where=name, accepted=accepted
        )
    return Key.of(secret)


def _encoding(payload: Payload) -> bytes:
    return payload.metadata.get("encoding", b"")


def _refused(code: Code, reason: str) -> Payload:
    return Payload(metadata={"encoding": REFUSED}, data=json.dumps([code, reason]).encode())
