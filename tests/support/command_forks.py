"""Runs commands quickly: one process imports the command line once, and forks a child for each command.

python -m tests.support.command_forks AT_ONCE < commands      one JSON list of words on each line

Each child is a process of its own from the first moment of the SDK on, and leaves as `turnwright` leaves; its
exit status, negative for a signal, is printed on a line of its own. The parent has started no thread when it
forks.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from typing import Final

from client import api  # noqa: F401  what commands import when they run; once here, not in each child
from client.cli import main

BY_INTERPRETER: Final = 99


def run(commands: list[list[str]], at_once: int) -> None:
    """Run all, some at once; print each status as it comes."""
    running = 0
    for words in commands:
        if running == at_once:
            _report()
            running -= 1
        if os.fork() == 0:
            _become(words)
        running += 1
    for _ in range(running):
        _report()


def _become(words: list[str]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    # An interpreter that exits beside the SDK's threads aborts once in some seventy times. Fifty runs would
    # often miss that, so a child that exits in this way is told by a status that no command has.
    atexit.register(os._exit, BY_INTERPRETER)
    main(words)
    sys.exit()


def _report() -> None:
    _, status = os.wait()
    print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    run([json.loads(line) for line in sys.stdin], int(sys.argv[1]))
