"""Simulate a kernel without openat2, as in a container that filters system calls."""

from __future__ import annotations

import ctypes
import struct

NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER_MODE = 38, 22, 2
OPENAT2, ALLOW, ANSWER_ERRNO = 437, 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def refuse_openat2(code: int) -> None:
    """Make every later openat2 call of this process fail with an errno."""
    steps = [
        (0x20, 0, 0, 0),  # load the call's number
        (0x15, 0, 1, OPENAT2),  # is it openat2?
        (0x06, 0, 0, ANSWER_ERRNO | code),
        (0x06, 0, 0, ALLOW),
    ]
    words = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.cast(words, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SET_SECCOMP, FILTER_MODE, program)):
        arguments = [
            ctypes.byref(argument) if argument is program else argument for argument in call
        ]
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")
