"""Declarations and registrations, held against each other both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel.errors import Code, TurnwrightError
from tests.activities.plugins.packages import ENTRY, load

SERVICE = "contract='stock@1', input={'type': 'object'}, output={'type': 'object'}, handler=run"
MODEL_FACING = f"{SERVICE}, model_facing=True, description='Says what is in stock.'"


def entry(*calls: str) -> dict[str, str]:
    """The files of an entry that makes these calls of its host."""
    lines = "".join(f"    host.{call}\n" for call in calls)
    return {
        ENTRY: f"async def run(value, ctx=None):\n    return value\ndef register(host):\n    pass\n{lines}"
    }


TOOL = entry(
    "register_tool(name='greet', description='Greets.', parameters={'type': 'object'}, handler=run,"
    " risk='write', needs_approval=True)"
)

DIFFERENCES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "tool-undeclared": (TOOL, {}, "registers 'greet', which contributes.tools does not list"),
    "tool-unregistered": (entry(), {"tools": ["greet"]}, "lists 'greet', which the entry does not register"),
    "tool-without-entry": ({}, {"tools": ["greet"]}, "lists 'greet'"),
    "tool-risk": (TOOL, {"tools": [{"name": "greet", "risk": "read"}]}, "says risk 'read'"),
    "tool-approval": (
        TOOL,
        {"tools": [{"name": "greet", "needsApproval": False}]},
        "says needsApproval False",
    ),
    "service-undeclared": (entry(f"register_service(name='a', {SERVICE})"), {}, "registers 'stock@1'"),
    "service-unregistered": (entry(), {"services": ["stock@1"]}, "contributes.services lists 'stock@1'"),
    "service-declared-once": (
        entry(f"register_service(name='a', {SERVICE})", f"register_service(name='b', {SERVICE})"),
        {"services": ["stock@1"]},
        "registers 'stock@1'",
    ),
    "service-model-facing": (
        entry(f"register_service(name='a', {MODEL_FACING})"),
        {"services": ["stock@1"]},
        "contributes.services lists 'stock@1'",
    ),
    "service-access": (
        entry(f"register_service(name='a', {SERVICE}, access='write')"),
        {"services": [{"contract": "stock@1"}]},
        "contributes.services lists 'stock@1'",
    ),
    "hook-undeclared": (entry("on('PreToolUse', run)"), {}, "registers 'PreToolUse'"),
    "hook-unregistered": (entry(), {"hooks": ["PreToolUse"]}, "contributes.hooks lists 'PreToolUse'"),
    "hook-group": (
        entry("on('PreToolUse', run, enforce='pre')"),
        {"hooks": ["PreToolUse"]},
        "says enforce 'normal', the entry 'pre'",
    ),
    "extension-undeclared": (
        entry("provide_extension('prompt.segment@1', 'mood', handler=run)"),
        {},
        "registers 'prompt.segment@1 as mood'",
    ),
    "extension-unregistered": (
        entry(),
        {"extensions": [{"point": "prompt.segment@1", "id": "mood"}]},
        "contributes.extensions lists 'prompt.segment@1 as mood'",
    ),
}

REFUSED = {
    "service-contract": (f"register_service(name='a', {SERVICE.replace('stock@1', 'stock')})", "no contract"),
    "service-sync": (f"register_service(name='a', {SERVICE.replace('=run', '=print')})", "not async"),
    "service-description": (
        f"register_service(name='a', {SERVICE}, model_facing=True)",
        "description is empty",
    ),
    "service-input": (
        f"register_service(name='a', {SERVICE.replace('object', 'array')})",
        "no object schema",
    ),
    "hook-event": ("on('Never', run)", "unknown event 'Never'"),
    "hook-time": ("on('PreToolUse', run, timeout_ms=0)", "timeout_ms is 0"),
    "extension-reserved": ("provide_extension('prompt.segment@1', 'static-prompt', handler=run)", "reserved"),
    "dispose": ("on_dispose(1)", "cannot be called"),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_a_declaration_without_its_registration_fails_the_entry_and_so_the_other_way(
    tmp_path: Path, case: str
) -> None:
    files, contributes, said = DIFFERENCES[case]
    with pytest.raises(TurnwrightError) as caught:
        load(tmp_path, files, **contributes)
    assert (caught.value.code, caught.value.where) == (Code.PACKAGE_LOAD, ENTRY)
    assert said in caught.value.message


@pytest.mark.parametrize("case", REFUSED)
def test_a_registration_that_cannot_work_is_refused_with_its_line(tmp_path: Path, case: str) -> None:
    call, said = REFUSED[case]
    with pytest.raises(TurnwrightError) as caught:
        load(tmp_path, entry(call))
    assert (caught.value.code, caught.value.where) == (Code.PACKAGE_LOAD, f"{ENTRY}:5")
    assert said in caught.value.message


def test_two_services_of_one_contract_have_a_declaration_each(tmp_path: Path) -> None:
    names = ("ensemble", "draw")
    files = entry(*(f"register_service(name='{name}', {MODEL_FACING})" for name in names))
    declared = {"contract": "stock@1", "modelFacing": True}
    code = load(tmp_path, files, services=[declared, declared])
    assert tuple(code.registered.services) == names


def test_what_matches_is_registered(tmp_path: Path) -> None:
    files = entry(
        "on('PreToolUse', run)",
        "on('PreToolUse', run, timeout_ms=200)",
        "provide_extension('prompt.segment@1', 'mood', handler=run)",
        "on_dispose(print)",
    )
    declared = {"hooks": ["PreToolUse"], "extensions": [{"point": "prompt.segment@1", "id": "mood"}]}
    registered = load(tmp_path, files, **declared).registered
    assert [hook.timeout_ms for hook in registered.hooks] == [None, 200]
    assert list(registered.extensions) == [("prompt.segment@1", "mood")]
    assert registered.disposers == [print]
