"""Leaves a process with the status it means."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn

_last_words: list[Callable[[], None]] = []


def before_leaving(flush: Callable[[], None]) -> None:
    """Let `leave` call this first; what it raises is not told."""
    _last_words.append(flush)


def leave(status: int) -> NoReturn:
    """Flush everything and end the process at once with this status.

    The SDK's threads can abort the interpreter while it exits, and a command that succeeded would then
    end with status 134 or 139.
    """
    for flush in (*_last_words, _flush_logging, _flush_streams):
        with contextlib.suppress(Exception):
            flush()
    os._exit(status)


def _flush_logging() -> None:
    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    for logger in loggers:
        for handler in getattr(logger, "handlers", ()):
            with contextlib.suppress(Exception):
                handler.flush()


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a closed pipe must not change the status
            stream.flush()
