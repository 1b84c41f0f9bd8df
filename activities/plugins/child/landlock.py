"""Landlock: the process can reach the named files from now on, and no others. Linux 5.13 and later."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 1

_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many rights on files a version of the interface knows; a right that is handled is denied."""
_ALL_TCP: Final = 0b11
_ALL_SCOPES: Final = 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version of the interface that the system offers; 0 where there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def restrict(readable: Iterable[Path]) -> None:
    """Leave this process nothing but to read what lies at or below these paths, and `/dev/null`.

    The caller has given up new privileges before.

    Raises:
        OSError: the system refuses, or has no Landlock.
    """
    offered = version()
    if not offered:
        raise OSError("the system has no Landlock")
    handled = (1 << _FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= offered)]) - 1
    rules = _Ruleset(handled, _ALL_TCP if offered >= 4 else 0, _ALL_SCOPES if offered >= 6 else 0)
    size = 8 if offered < 4 else 16 if offered < 6 else 24
    ruleset = _call(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        _allow(ruleset, Path(os.devnull), _READ_FILE | _WRITE_FILE)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= ~_READ_DIR
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Rule(rights, place)), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    answer = int(libc.syscall(number, *arguments))
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return answer
