"""Run one program and leave nothing of it behind: executed by itself, `python -I -S supervisor.py`.

stdin brings the order, a line of JSON. From then on a further line sends SIGTERM to the program's
process group, and the end of stdin kills the program.
All processes that the program starts stay descendants of this process, which is a subreaper: also
those that lose their parent, leave its group or session, or clear their environment. When the
program or stdin ends, all of them are killed, and this process ends only when none is left. Its
exit status is the program's, 128 and the number for a signal.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

CANNOT_START = 127
_SET_SUBREAPER = 36  # prctl
_LOOK_EVERY_S = 0.005
_LIMITS = {
    "memory": resource.RLIMIT_AS,
    "cpu": resource.RLIMIT_CPU,
    "file": resource.RLIMIT_FSIZE,
    "core": resource.RLIMIT_CORE,
}


def read_order() -> dict[str, Any]:
    """Return the first line on stdin."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 65536)
        if not piece:
            sys.exit(CANNOT_START)
        line += piece
    order: dict[str, Any] = json.loads(line)
    return order


def adopt_orphans() -> None:
    """Become the parent of what loses its own further down, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_SUBREAPER, 1, 0, 0, 0)


def start(order: dict[str, Any], groups: list[Path]) -> int:
    """Start the program and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        become(order, groups)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        os.write(2, f"The command cannot be started: {reason}.\n".encode())
    finally:
        os._exit(CANNOT_START)


def become(order: dict[str, Any], groups: list[Path]) -> NoReturn:
    """Turn this process into the program."""
    for group in groups:
        (group / "cgroup.procs").write_text("0")
    os.setsid()
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    for name, value in order["limits"].items():
        hard = resource.getrlimit(_LIMITS[name])[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(_LIMITS[name], (most, most))
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(order["cwd"])
    argv = list(order["argv"])
    if order["hidden"]:  # arguments that no list of processes shows
        argv[1:1] = ["--args", in_memory(b"\0".join(map(os.fsencode, order["hidden"])) + b"\0")]
    if order["filter"]:
        argv[1:1] = ["--seccomp", in_memory(bytes.fromhex(order["filter"]))]
    os.execve(argv[0], argv, order["env"])  # noqa: S606  (the order is the runner's own)


def in_memory(data: bytes) -> str:
    """Return the number of an open file, which the program inherits, that holds this."""
    held = os.memfd_create("order")
    os.set_inheritable(held, True)
    os.write(held, data)
    os.lseek(held, 0, os.SEEK_SET)
    return str(held)


def make_groups(order: dict[str, Any], made: list[Path]) -> None:
    """Make the control groups of the order; each holds the program from its first moment."""
    for folder, limits in order["groups"].items():
        group = Path(folder)
        group.mkdir()
        made.append(group)
        for name, value in limits.items():
            (group / name).write_text(str(value))


def attend(pid: int) -> int:
    """Return the program's exit status, or that of a killed one when stdin ends first."""
    readable, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        for dead, status in reap():
            if dead == pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        ready, _, _ = select.select([0, readable], [], [])
        if readable in ready:
            os.read(readable, 4096)
        if 0 in ready:
            if not os.read(0, 4096):
                return 128 + signal.SIGKILL
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGTERM)


def reap() -> list[tuple[int, int]]:
    """Wait for the children that have ended; return (process id, status) of each."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while (dead := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(dead)
    return found


def end_all(pid: int) -> None:
    """Kill everything below this process until nothing is left."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    while True:
        for each in below(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(each, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_LOOK_EVERY_S)


def below(top: int) -> set[int]:
    """Return the process ids of all descendants that /proc shows."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_bytes().rpartition(b")")[2].split()
            parents[int(entry.parent.name)] = int(fields[1])
    found, more = {top}, {top}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more and pid not in found}
        found |= more
    return found - {top}


def main() -> int:
    """Carry out the order."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = read_order()
    adopt_orphans()
    groups: list[Path] = []
    try:
        make_groups(order, groups)
        pid = start(order, groups)
        try:
            return attend(pid)
        finally:
            end_all(pid)
    except OSError as error:
        os.write(2, f"The command cannot be started: {error.strerror}.\n".encode())
        return CANNOT_START
    finally:
        for group in groups:
            with contextlib.suppress(OSError):
                group.rmdir()


if __name__ == "__main__":
    sys.exit(main())
