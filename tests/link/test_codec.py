"""The codec alone: it encrypts what it is given, and never raises for what it is sent."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload

from kernel.errors import Code, TurnwrightError
from link.codec import ENCRYPTED, EncryptionCodec, Key, codec, refusal
from link.settings import load_settings
from tests.link.probe import new_key

OLD, NEW, OTHER = (Key.of(bytes([n]) * 32) for n in range(3))
PAYLOAD = Payload(metadata={"encoding": b"json/plain"}, data=b'{"secret": 1}')


async def code_after(payload: Payload, *keys: Key) -> Code | None:
    [decoded] = await EncryptionCodec(keys).decode([payload])
    refused = refusal(decoded)
    return refused[0] if refused else None


async def sealed(*keys: Key) -> Payload:
    [payload] = await EncryptionCodec(keys).encode([PAYLOAD])
    return payload


async def test_payload_comes_back_and_shows_nothing_on_the_way() -> None:
    payload = await sealed(NEW)
    assert payload.metadata["encoding"] == ENCRYPTED
    assert b"secret" not in payload.SerializeToString()
    assert b"json" not in payload.SerializeToString()
    assert await EncryptionCodec([NEW]).decode([payload]) == [PAYLOAD]


async def test_nothing_is_encrypted_twice_and_no_nonce_comes_twice() -> None:
    coder = EncryptionCodec([NEW])
    first, second = await coder.encode([PAYLOAD, PAYLOAD])
    assert first.data != second.data
    assert await coder.encode([first]) == [first]


async def test_first_key_encrypts_and_every_key_decrypts() -> None:
    written_before = await sealed(OLD)
    rotated = EncryptionCodec([NEW, OLD])
    assert await rotated.decode([written_before]) == [PAYLOAD]
    assert await code_after((await rotated.encode([PAYLOAD]))[0], NEW) is None
    assert await code_after(written_before, NEW) == Code.CODEC_KEY


async def test_what_cannot_be_read_becomes_a_marker_with_its_code() -> None:
    good = await sealed(NEW)
    short = Payload(metadata=good.metadata, data=good.data[:-1])
    nothing = Payload(metadata=good.metadata)
    altered = Payload(metadata=good.metadata, data=good.data[:-1] + bytes([good.data[-1] ^ 1]))
    renamed = Payload(metadata={**good.metadata, "encryption-key-id": OTHER.id.encode()}, data=good.data)
    nameless = Payload(metadata={"encoding": ENCRYPTED, "encryption-key-id": b"\xff"}, data=good.data)
    for payload in (short, nothing, altered, renamed, nameless):
        assert await code_after(payload, NEW) == Code.CODEC_KEY
    assert await code_after(renamed, NEW, OTHER) == Code.CODEC_KEY
    forged = Payload(metadata={"encoding": b"turnwright/refused"}, data=b'["internal", "x"]')
    for payload in (PAYLOAD, Payload(), forged):
        assert await code_after(payload, NEW) == Code.CODEC_PLAINTEXT


@given(data=st.binary(max_size=200), key_id=st.binary(max_size=20), encoding=st.binary(max_size=20))
async def test_decoding_never_raises(data: bytes, key_id: bytes, encoding: bytes) -> None:
    for name in (encoding, ENCRYPTED):
        for known in (key_id, NEW.id.encode()):
            payload = Payload(metadata={"encoding": name, "encryption-key-id": known}, data=data)
            assert await code_after(payload, NEW) in (Code.CODEC_KEY, Code.CODEC_PLAINTEXT)


def test_settings_turn_encryption_on(tmp_path: Path) -> None:
    off = load_settings({}, cwd=tmp_path)
    assert codec(off, {}) is None
    on = load_settings(
        {"TURNWRIGHT_ENCRYPTION_KEY_ENV": "K", "TURNWRIGHT_PREVIOUS_KEY_ENVS": "K0"}, cwd=tmp_path
    )
    assert codec(on, {"K": new_key(), "K0": new_key()}) is not None


@pytest.mark.parametrize("value", [None, "", "short", "!" * 44, base64.b64encode(bytes(31)).decode()])
def test_unusable_key_is_refused_by_the_name_of_its_variable(tmp_path: Path, value: str | None) -> None:
    settings = load_settings({"TURNWRIGHT_ENCRYPTION_KEY_ENV": "MY_KEY"}, cwd=tmp_path)
    with pytest.raises(TurnwrightError) as caught:
        codec(settings, {} if value is None else {"MY_KEY": value})
    assert (caught.value.code, caught.value.where) == (Code.CONFIG_ENCRYPTION_KEY, "MY_KEY")
    assert value is None or value == "" or value not in str(caught.value)
