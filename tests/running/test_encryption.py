"""Encryption, end to end: a whole turn plays, and nobody without the key reads a word of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from kernel.errors import Code
from kernel.wire import names
from kernel.wire.ids import agent_workflow, job_workflow, session_workflow
from link.connect import connect
from link.settings import Settings
from tests.link.probe import new_key
from tests.running.guide import PACKAGE, STORY, approvals, guide, marks
from tests.support.model_server import ModelServer, Reply
from tests.support.rig import Rig, SessionDriver, rig
from tests.support.temporal import unique_queue

pytestmark = pytest.mark.slow

SECRETS = {
    "the player's words": "quillfeather",
    "the story": "velvetmoon",
    "a tool's arguments": "copperlark",
    "a handler's failure": "saltmarsh",
    "a note to an approval": "inkwell",
    "steering text": "hollowreed",
    "a summary": "guide/story",
    "a refused package": "thornapple",
}


async def test_nobody_without_the_key_reads_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURN_KEY", new_key())
    packages = {PACKAGE: guide(weather='raise RuntimeError("a saltmarsh")')}
    model = ModelServer([marks(arguments='{"what": "copperlark"}'), Reply(text="A velvetmoon.")])
    async with rig(tmp_path, packages=packages, model=model, TURNWRIGHT_ENCRYPTION_KEY_ENV="TURN_KEY") as r:
        session = await r.session(packages=[PACKAGE])
        receipt = await session.submit("A quillfeather.")
        [ref] = await approvals(session)
        await session.update(names.INTERJECT, {"interjection_id": "i1", "text": "A hollowreed."})
        await session.update(names.RESOLVE, {"ref": ref, "decision": "approve", "note": "An inkwell."})
        result = await session.result(receipt)
        assert result["story"]["text"] == "A velvetmoon."
        assert "saltmarsh" in json.dumps(result["runs"])
        await session.until(lambda state: not state["jobs"])
        failed = await r.session(packages=["thornapple"])
        with pytest.raises(WorkflowFailureError) as caught:
            await failed.handle.result()
        assert "thornapple" in str(caught.value.cause)

        outside = await Client.connect(r.settings.temporal.address)
        histories = {
            workflow_id: await _raw(outside.get_workflow_handle(workflow_id))
            for workflow_id in (
                session.handle.id,
                receipt["workflow_id"],
                agent_workflow(receipt["turn_id"], STORY),
                job_workflow(result["jobs"][0]["job_id"]),
                failed.handle.id,
            )
        }
        leaks = [
            (what, workflow_id)
            for what, secret in SECRETS.items()
            for workflow_id, history in histories.items()
            if secret in history.replace(_spelled(workflow_id), "")
        ]
        assert leaks == []


async def test_plain_client_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F23, on the product's own workflows: a start, and a message to a session that runs."""
    monkeypatch.setenv("TURN_KEY", new_key())
    async with rig(tmp_path, TURNWRIGHT_ENCRYPTION_KEY_ENV="TURN_KEY") as r:
        session = await r.session(packages=[])
        plain = await connect(_keyed(r.settings, None))
        assert (await _refusal(plain, r)).type == Code.CODEC_PLAINTEXT
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await plain.get_workflow_handle(session.handle.id).execute_update(
                names.CONTROL, {"action": "pause"}
            )
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == Code.CODEC_PLAINTEXT
        assert "encryption is on here" in caught.value.cause.message
        await _assert_untouched(session)


async def test_encrypted_client_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURN_KEY", new_key())
    async with rig(tmp_path) as r:
        session = await r.session(packages=[])
        sealed = await connect(_keyed(r.settings, "TURN_KEY"))
        assert (await _refusal(sealed, r)).type == Code.CODEC_ENCRYPTED
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await sealed.get_workflow_handle(session.handle.id).execute_update(
                names.CONTROL, {"action": "pause"}
            )
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == Code.CODEC_ENCRYPTED
        await _assert_untouched(session)


async def _assert_untouched(session: SessionDriver) -> None:
    assert (await session.until(lambda state: state["status"] == "active"))["queue"] == []
    assert (await session.update(names.CONTROL, {"action": "pause"}))["status"] == "paused"


async def _refusal(client: Client, r: Rig) -> ApplicationError:
    """What a start by this client fails with."""
    session_id = unique_queue("s")
    handle = await client.start_workflow(
        names.SESSION,
        {"session_id": session_id},
        id=session_workflow(session_id),
        task_queue=r.settings.temporal.queue,
    )
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


async def _raw(handle: WorkflowHandle[object, object]) -> str:
    """Everything a history holds, payload bytes as text."""
    history = (await handle.fetch_history()).to_json_dict()
    return "\n".join(_texts(history))


def _texts(node: object) -> list[str]:
    if isinstance(node, dict):
        return [text for key, child in node.items() for text in [str(key), *_texts(child)]]
    if isinstance(node, list):
        return [text for child in node for text in _texts(child)]
    text = str(node)
    try:
        return [text, base64.b64decode(text, validate=True).decode("utf-8", "replace")]
    except ValueError:
        return [text]


def _spelled(workflow_id: str) -> str:
    """Ids are names on the wire, and stay readable; of an agent's, the runtime."""
    return workflow_id.partition("/")[2]


def _keyed(settings: Settings, variable: str | None) -> Settings:
    encryption = settings.encryption.model_copy(update={"key_env": variable})
    return settings.model_copy(update={"encryption": encryption})
