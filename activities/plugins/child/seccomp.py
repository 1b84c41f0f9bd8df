"""A filter of system calls: no network, no further processes, nothing of other processes. Linux.

What is refused fails with EPERM, which Python raises as `PermissionError`; the code goes on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from typing import Final

_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENT_AT = 0, 4, 16
_THREAD: Final = 0x00010000
_FOREIGN_TABLE: Final = 0x40000000
"""Numbers from here on are those of x32, a second table of the same calls."""

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# x86_64, aarch64; -1 where the machine has no such call.
_REFUSED: Final = {
    "socket": (41, 198),
    "fork": (57, -1),
    "vfork": (58, -1),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    # shared memory, semaphores and queues reach other processes
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # would do other calls' work without making them
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "setns": (308, 268),
    "unshare": (272, 97),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "personality": (135, 92),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
}
_OF_ITSELF: Final = {"kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "prlimit64": (302, 261)}
"""Calls that may name this process, or none, as their first argument."""
_CLONE: Final = (56, 220)
_CLONE3: Final = (435, 435)


def offered() -> bool:
    """Whether there is a table for this machine."""
    return os.uname().sysname == "Linux" and platform.machine() in _ARCHITECTURES


def restrict() -> None:
    """Refuse the calls from now on, for good. The caller has given up new privileges before.

    Raises:
        OSError: the system refuses, or this machine has no table.
    """
    if not offered():
        raise OSError(f"no table of system calls for {platform.machine()}")
    program = _program(platform.machine(), os.getpid())
    filters = ctypes.create_string_buffer(program, len(program))

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filters", ctypes.c_void_p))

    whole = _Program(len(program) // 8, ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(whole), 0, 0):
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _program(machine: str, own: int) -> bytes:
    """The filter, as the kernel reads it: every test jumps over what does not concern it."""
    column = list(_ARCHITECTURES).index(machine)
    no = _step(_RETURN, _ERRNO | errno.EPERM)
    yes = _step(_RETURN, _ALLOW)
    steps = [_step(_LOAD, _ARCHITECTURE_AT), _step(_EQUAL, _ARCHITECTURES[machine], skip_if=1), no]
    steps += [_step(_LOAD, _NUMBER_AT), _step(_AT_LEAST, _FOREIGN_TABLE, skip_unless=1), no]
    for numbers in _REFUSED.values():
        if numbers[column] >= 0:
            steps += [_step(_EQUAL, numbers[column], skip_unless=1), no]
    # A C library that meets ENOSYS goes back to `clone`, whose flags can be read here.
    steps += [_step(_EQUAL, _CLONE3[column], skip_unless=1), _step(_RETURN, _ERRNO | errno.ENOSYS)]
    steps += [_step(_EQUAL, _CLONE[column], skip_unless=4), _step(_LOAD, _ARGUMENT_AT)]
    steps += [_step(_HAS_BITS, _THREAD, skip_unless=1), yes, no]
    for numbers in _OF_ITSELF.values():
        steps += [_step(_EQUAL, numbers[column], skip_unless=5), _step(_LOAD, _ARGUMENT_AT)]
        steps += [_step(_EQUAL, own, skip_if=1), _step(_EQUAL, 0, skip_unless=1), yes, no]
    return b"".join([*steps, yes])


def _step(code: int, value: int, *, skip_if: int = 0, skip_unless: int = 0) -> bytes:
    return struct.pack("HBBI", code, skip_if, skip_unless, value)
