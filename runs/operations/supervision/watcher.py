"""The watcher: a process beside the supervisor, `python -I -S watcher.py …`, without Django.

It reads from a pipe which services the supervisor starts and ends. If the pipe closes without
`bye`, the supervisor was killed: the watcher stops all services in order, cleans up and ends. It
also holds the write end of the liveness pipe, by which the services' guards (process_group.py)
notice that both supervisor and watcher have ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

# The environment variable that marks a service's processes, also those outside its process group.
MARK = "CONTINUITY_PART_OF"
DRAIN_S = 7.0
STOPPED_LAST = "redis"  # the other services may need it while they drain
_PROC = Path("/proc")


def main(argv: list[str]) -> None:
    """Follow the supervisor on stdin. argv: the services' mark, state file, temporary folder."""
    mark, state, temp_folder = argv
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, str] = {}
    for line in sys.stdin:
        verb, pgid, name = line.split()
        if verb == "bye":
            return
        if verb == "add":
            groups[int(pgid)] = name
        else:
            groups.pop(int(pgid), None)
    _stop([pgid for pgid, name in groups.items() if name != STOPPED_LAST], DRAIN_S)
    _stop([pgid for pgid, name in groups.items() if name == STOPPED_LAST], 2.0)
    kill_marked(mark, patience_s=1.0)
    shutil.rmtree(temp_folder, ignore_errors=True)
    Path(state).unlink(missing_ok=True)


def _stop(groups: list[int], patience_s: float) -> None:
    """Send SIGTERM to the leader of every group, wait for all, then kill the groups."""
    for pgid in groups:
        send_signal(os.kill, pgid, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while any(map(is_running, groups)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pgid in groups:
        send_signal(os.killpg, pgid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Return whether a process runs. With /proc a zombie counts as ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return not (_PROC / "self").exists() and send_signal(os.kill, pid, 0)
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def send_signal(how: Callable[[int, int], None], pid: int, number: int) -> bool:
    """Send a signal to a process or a group; False if it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        how(pid, number)
        return True
    return False


def list_marked(mark: str) -> list[int]:
    """Return the processes with this mark, or one below it; none where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for pid in _pids():
        try:
            environ = (_PROC / pid / "environ").read_bytes()
        except OSError:
            continue  # ended, another user's, or a sandboxed child that ends with its parent
        for variable in environ.split(b"\0"):
            if variable == wanted or variable.startswith(wanted + b"/"):
                found.append(int(pid))
                break
    return found


def kill_marked(mark: str, *, patience_s: float) -> None:
    """Wait for the marked processes to end by themselves, then kill the rest and wait again."""
    deadline = time.monotonic() + patience_s
    while (left := list_marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        send_signal(os.kill, pid, signal.SIGKILL)
    deadline = time.monotonic() + 2
    while left and list_marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)


def _pids() -> list[str]:
    try:
        return [name for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208  (names only)
    except OSError:
        return []


if __name__ == "__main__":
    main(sys.argv[1:])
