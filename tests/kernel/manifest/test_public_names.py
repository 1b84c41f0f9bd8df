"""What other rooms import."""

from __future__ import annotations

import kernel.manifest as room
from kernel.manifest import BUILTIN_TOOLS, SUPPORTED_BUILTIN_TOOLS


def test_every_public_name_exists() -> None:
    assert len(set(room.__all__)) == len(room.__all__)
    assert all(hasattr(room, name) for name in room.__all__)


def test_builtin_tools_are_those_of_the_dialect() -> None:
    assert len(BUILTIN_TOOLS) == 23
    assert {"suspend", "delegate", "emit-event", "runtime-done"} <= BUILTIN_TOOLS
    assert SUPPORTED_BUILTIN_TOOLS <= BUILTIN_TOOLS
