"""System calls that a command has no use for, though namespaces leave them open: a filter for
bubblewrap's `--seccomp`.

Refused are sockets of other kinds than those of a network namespace (AF_VSOCK reaches the host of a
virtual machine from inside of one), io_uring, which opens such sockets past any filter, keyrings,
which are the runner's, and the set-id bits, by which a program left in the folder would run as the
runner for a user who starts it outside. All other calls are allowed.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF, 32 bits wide
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000  # calls of a second ABI of x86-64, under the same architecture
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_SET_ID = 0o6000


@dataclass(frozen=True, slots=True)
class _Machine:
    """Numbers of system calls, as <asm/unistd.h> has them.

    Attributes:
        modes: which argument of a call is the mode of a file.
        absent: openat2 (its mode is in memory, which a filter cannot read), io_uring_setup,
            add_key, request_key, keyctl.
    """

    architecture: int
    socket: int
    modes: Mapping[int, int]
    absent: Sequence[int]


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        41,
        {2: 2, 85: 1, 90: 1, 91: 1, 133: 1, 257: 3, 259: 2, 268: 2, 452: 2},
        (437, 425, 248, 249, 250),
    ),
    "aarch64": _Machine(
        0xC00000B7, 198, {33: 2, 52: 1, 53: 2, 56: 3, 452: 2}, (437, 425, 217, 218, 219)
    ),
}


def filter_of_calls() -> bytes | None:
    """Return the filter as the kernel reads it; None: none was written for this kind of machine."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return None
    return b"".join(struct.pack("=HBBI", *one) for one in _instructions(known))


def _instructions(machine: _Machine) -> Iterator[tuple[int, int, int, int]]:
    """Yield (code, how far to jump if so, if not, operand)."""
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, machine.architecture  # 32-bit programs have other numbers: they end here
    yield _RETURN, 0, 0, _REFUSE | errno.ENOSYS
    yield _LOAD, 0, 0, _NUMBER
    yield _AT_LEAST, 0, 1, _X32
    yield _RETURN, 0, 0, _REFUSE | errno.ENOSYS
    for number in machine.absent:
        yield _EQUAL, 0, 1, number
        yield _RETURN, 0, 0, _REFUSE | errno.ENOSYS
    yield _EQUAL, 0, len(_FAMILIES) + 3, machine.socket
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    for left, family in zip(range(len(_FAMILIES), 0, -1), _FAMILIES, strict=True):
        yield _EQUAL, left, 0, family
    yield _RETURN, 0, 0, _REFUSE | errno.EAFNOSUPPORT
    yield _RETURN, 0, 0, _ALLOW
    for number, argument in machine.modes.items():
        yield _EQUAL, 0, 4, number
        yield _LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument
        yield _ANY_BIT, 0, 1, _SET_ID
        yield _RETURN, 0, 0, _REFUSE | errno.EPERM
        yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _ALLOW
