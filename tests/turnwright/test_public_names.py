from __future__ import annotations

import subprocess
import sys

import turnwright.sdk

NAMES = """
CHARACTER_ACTOR_CONTRACT NARRATIVE_ENGINE_CONTRACT OPERATIONS_CONTRACT SCENE_CAST_CONTRACT
TURN_DIGEST_CONTRACT TURN_POLICY_CONTRACT
CharacterReply Context FunctionContext Gateway Host HttpResponse Json Logger Narrative Network ObjectReply
Operations PluginData Progress Record RegisteredTool Risk SceneCast SeededRandom Segment SessionState Signal
TextReply ToolContext ToolError Tools TurnDigest TurnPolicy TurnPolicyInput
contract_schema instruction_locale_for
"""


def test_the_public_names_are_these() -> None:
    assert sorted(turnwright.sdk.__all__) == sorted(NAMES.split())
    assert all(hasattr(turnwright.sdk, name) for name in turnwright.sdk.__all__)


def test_every_public_class_and_function_is_documented() -> None:
    documented = [getattr(turnwright.sdk, name) for name in turnwright.sdk.__all__ if name[0].islower()]
    documented += [turnwright.sdk.FunctionContext, turnwright.sdk.ToolContext, turnwright.sdk.Host]
    assert all(thing.__doc__ for thing in documented)


def test_the_package_itself_imports_nothing() -> None:
    count = "import sys; before = set(sys.modules); import turnwright; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["turnwright"]
