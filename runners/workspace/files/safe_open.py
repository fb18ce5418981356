"""Open paths below a folder without following links, even if the tree changes during the call.

With openat2 the kernel resolves the whole path in one call and rejects links itself. Without it
(ENOSYS, or EPERM from a container's seccomp filter) each component is opened relative to the one
before, with O_NOFOLLOW.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from functools import cache

_OPENAT2 = 437  # the system call's number, the same on every architecture of Linux
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
# To stat a path without opening it; without O_PATH it is opened, but never blocks on a pipe.
STAT_FLAGS: int = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
_TRIES = 32


class SymlinkInPath(OSError):
    """A component of the path is a symbolic link."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW_BYTES = ctypes.sizeof(_OpenHow)


def open_below(folder: int, parts: Sequence[str], flags: int) -> int:
    """Open a path, given as components, below an open folder; return the descriptor.

    Raises:
        SymlinkInPath: A component is a symbolic link.
        OSError: As `os.open`.
    """
    if has_openat2():
        return _open_at_once(folder, parts, flags)
    return _open_step_by_step(folder, parts, flags)


@cache
def has_openat2() -> bool:
    """Return whether the kernel supports openat2 and no seccomp filter blocks it."""
    if sys.platform != "linux":
        return False
    root = os.open("/", STAT_FLAGS)
    try:
        os.close(_openat2(root, b".", STAT_FLAGS))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def _open_at_once(folder: int, parts: Sequence[str], flags: int) -> int:
    path = os.fsencode("/".join(parts) or ".")
    for attempt in range(_TRIES):
        try:
            return _openat2(folder, path, flags)
        except OSError as exc:
            if exc.errno in {errno.ELOOP, errno.EXDEV}:
                raise SymlinkInPath(exc.errno, "a link is on the way") from None
            # EAGAIN: something was renamed while the kernel resolved the path.
            if exc.errno not in {errno.EAGAIN, errno.EINTR} or attempt == _TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _openat2(folder: int, path: bytes, flags: int) -> int:
    fd: int = _syscall()(_OPENAT2, folder, path, ctypes.addressof(_how(flags)), _HOW_BYTES)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


@cache
def _how(flags: int) -> _OpenHow:
    """Return the open_how struct; the kernel only reads it, so calls and threads share it."""
    return _OpenHow(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)


@cache
def _syscall() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    syscall: Callable[..., int] = call
    return syscall


def _open_step_by_step(folder: int, parts: Sequence[str], flags: int) -> int:
    current = os.dup(folder)
    try:
        for part in parts[:-1]:
            child = _open_one(current, part, STAT_FLAGS | os.O_DIRECTORY)
            os.close(current)
            current = child
        return _open_one(current, parts[-1] if parts else ".", flags)
    finally:
        os.close(current)


def _open_one(folder: int, name: str, flags: int) -> int:
    """Open one component; reject a link, also where O_PATH would return the link's descriptor."""
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as exc:
        if exc.errno == errno.ELOOP or (exc.errno == errno.ENOTDIR and _is_link(folder, name)):
            raise SymlinkInPath(errno.ELOOP, "a link is on the way") from None
        raise
    if stat.S_ISLNK(os.fstat(fd).st_mode):
        os.close(fd)
        raise SymlinkInPath(errno.ELOOP, "a link is on the way")
    return fd


def _is_link(folder: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False
