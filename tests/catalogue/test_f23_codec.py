"""F23: one client without the codec. It is refused by name at once, in both directions."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from kernel.errors import Code, TurnwrightError
from link.connect import connect
from link.settings import Settings, load_settings
from tests.link.probe import Note, Probe, assert_goes_on, new_key, probe_worker, start_probe
from tests.support.temporal import link_settings, unique_queue

pytestmark = pytest.mark.slow


@pytest.fixture
def plain(tmp_path: Path) -> Settings:
    return link_settings(tmp_path)


def encrypting(plain: Settings, *variables: str) -> Settings:
    """The same deployment with encryption on: the first variable's key encrypts."""
    encryption = {"key_env": variables[0], "previous_key_envs": variables[1:]}
    return Settings.model_validate({**plain.model_dump(), "encryption": encryption})


async def refusal(call: Awaitable[object]) -> ApplicationError:
    with pytest.raises((WorkflowFailureError, WorkflowUpdateFailedError)) as caught:
        await call
    cause = caught.value.__cause__
    assert isinstance(cause, ApplicationError)
    return cause


async def start(settings: Settings) -> object:
    client = await connect(settings)
    return await client.execute_workflow(
        Probe.run, Note(text="x"), id=unique_queue("probe"), task_queue=settings.temporal.queue
    )


async def test_plain_client_is_refused_by_an_encrypted_worker(
    plain: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("F23_KEY", new_key())
    async with probe_worker(encrypting(plain, "F23_KEY")):
        error = await refusal(start(plain))
    assert error.type == Code.CODEC_PLAINTEXT
    assert "encryption is on here" in error.message, "the plain client can read why"


async def test_encrypted_client_is_refused_by_a_plain_worker(
    plain: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("F23_KEY", new_key())
    async with probe_worker(plain):
        error = await refusal(start(encrypting(plain, "F23_KEY")))
    assert error.type == Code.CODEC_ENCRYPTED
    assert "encryption is off here" in error.message


async def test_client_with_another_key_is_refused(plain: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("F23_KEY", new_key())
    monkeypatch.setenv("F23_OTHER", new_key())
    async with probe_worker(encrypting(plain, "F23_KEY")):
        error = await refusal(start(encrypting(plain, "F23_OTHER")))
    assert error.type == Code.CODEC_KEY


async def test_running_session_is_not_harmed_by_a_plain_client(
    plain: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("F23_KEY", new_key())
    settings = encrypting(plain, "F23_KEY")
    async with probe_worker(settings) as client:
        handle = await start_probe(client, settings)
        outside = (await connect(plain)).get_workflow_handle_for(Probe.run, handle.id)
        error = await refusal(outside.execute_update(Probe.add, Note(text="x")))
        assert error.type == Code.CODEC_PLAINTEXT
        await outside.signal(Probe.note, Note(text="x"))
        assert (await handle.query(Probe.seen)).texts == ()
        await assert_goes_on(handle)


async def test_key_can_be_replaced_while_a_session_runs(
    plain: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("F23_OLD", new_key())
    monkeypatch.setenv("F23_NEW", new_key())
    old, rotated = encrypting(plain, "F23_OLD"), encrypting(plain, "F23_NEW", "F23_OLD")
    async with probe_worker(old) as client:
        handle = await start_probe(client, old)
        await handle.execute_update(Probe.add, Note(text="under the old key"))
    async with probe_worker(rotated) as client:
        handle = client.get_workflow_handle_for(Probe.run, handle.id)
        assert (await handle.query(Probe.seen)).texts == ("under the old key",)
        await assert_goes_on(handle)


async def test_client_whose_key_is_not_set_does_not_even_connect(tmp_path: Path) -> None:
    environ = {"TURNWRIGHT_ENCRYPTION_KEY_ENV": "F23_NOT_SET", "TURNWRIGHT_ADDRESS": "127.0.0.1:1"}
    with pytest.raises(TurnwrightError) as caught:
        await connect(load_settings(environ, cwd=tmp_path))
    assert (caught.value.code, caught.value.where) == (Code.CONFIG_ENCRYPTION_KEY, "F23_NOT_SET")
