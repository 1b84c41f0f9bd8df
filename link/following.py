"""Children that end with whoever started them, however that ends. Linux only."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

# Asks Linux to kill the child when its parent dies, then becomes the program. A `preexec_fn` could do the
# same, but is unsafe in a process with threads.
_FOLLOW_PARENT: Final = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 9)\n"
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])\n"
)


def following(command: Sequence[str], *, system: str = sys.platform) -> list[str]:
    """The command line that runs a command as such a child; where the system cannot, the command itself."""
    if system != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _FOLLOW_PARENT, str(os.getpid()), *command]
