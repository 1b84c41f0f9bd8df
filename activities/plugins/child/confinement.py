"""What a child process gives up before it reads a line of the package (DECISIONS 25).

Each layer is applied where the system offers it; what could not be applied is told, never passed over.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from activities.plugins.child import landlock, seccomp
from kernel.policy import Layer

ROOT: Final = Path(__file__).parents[3]
"""The folder that our own modules are imported from."""

NOBODY: Final = 65534
_OURS: Final = ("activities", "kernel", "turnwright")
_SYSTEM: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/localtime")
_DEVICES: Final = ("/dev/urandom", "/dev/random", "/dev/zero")
_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38
_CAPABILITIES_VERSION: Final = 0x20080522


@dataclass(frozen=True)
class Confinement:
    """The layers in force, and why each of the others is not."""

    applied: tuple[Layer, ...]
    missing: dict[Layer, str]


def die_with(parent: int) -> None:
    """End this process when its parent ends, however that happens. Linux only."""
    if sys.platform == "linux":
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def confine(package: Path, *, memory_bytes: int) -> Confinement:
    """Give up what package code has no use for; everything it may import lazily stays readable."""
    readable = tuple(_readable(package))
    layers: dict[Layer, Callable[[], None]] = {
        "limits": lambda: _limit(memory_bytes),
        "privileges": lambda: _drop_privileges(readable),
        "files": lambda: landlock.restrict(readable),
        "system-calls": seccomp.restrict,
    }
    applied: list[Layer] = []
    missing: dict[Layer, str] = {}
    for layer, apply in layers.items():
        try:
            apply()
            applied.append(layer)
        except (OSError, ValueError, AttributeError) as error:  # a platform without the call, too
            missing[layer] = str(error)[:200]
    return Confinement(tuple(applied), missing)


def _limit(memory_bytes: int) -> None:
    for what, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def _drop_privileges(readable: tuple[Path, ...]) -> None:
    if os.geteuid() == 0:
        if all(map(_open_to_all, readable)):
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            _prctl(_DIE_WITH_PARENT, signal.SIGKILL)  # a change of user forgets it
        else:
            _drop_capabilities()
    _prctl(_NO_NEW_PRIVILEGES, 1)


def _drop_capabilities() -> None:
    """The superuser keeps its name, for Python lies where nobody else may read, and nothing else."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(header, none):
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def _open_to_all(path: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in path.resolve().parents)


def _readable(package: Path) -> Iterator[Path]:
    yield package
    yield from (ROOT / name for name in _OURS)
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    beside = (Path(sys.base_prefix, "lib"),)
    for path in (*map(Path, sorted(libraries)), *beside, *map(Path, _SYSTEM), *map(Path, _DEVICES)):
        if path.exists():
            yield path


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl: {os.strerror(ctypes.get_errno())}")
