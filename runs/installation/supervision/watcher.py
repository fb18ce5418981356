"""The supervisor's watcher: a process of its own, `python -I -S watcher.py …`, without Django.

It reads from a pipe what the supervisor starts and ends. When the pipe closes without a farewell,
the supervisor was killed: the watcher stops every part in order, cleans up and ends. It also holds
the parts' life line, so that their leashes (groups.py) notice when both of them are gone.
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

# The variable by which a part's processes are found, also those that left its process group.
MARK = "CONTINUITY_PART_OF"
DRAIN_S = 7.0
LAST = "redis"  # what the others may need while they drain
_PROC = Path("/proc")


def main(argv: list[str]) -> None:
    """Follow the supervisor on stdin; argv: the mark of its parts, its state file, its scratch."""
    mark, state, scratch = argv
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
    _stop([pgid for pgid, name in groups.items() if name != LAST], DRAIN_S)
    _stop([pgid for pgid, name in groups.items() if name == LAST], 2.0)
    kill_marked(mark, patience_s=1.0)
    shutil.rmtree(scratch, ignore_errors=True)
    Path(state).unlink(missing_ok=True)


def _stop(groups: list[int], patience_s: float) -> None:
    """Ask the leader of every group to end, wait for all, then kill what is left of the groups."""
    for pgid in groups:
        send(os.kill, pgid, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while any(map(lives, groups)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pgid in groups:
        send(os.killpg, pgid, signal.SIGKILL)


def lives(pid: int) -> bool:
    """Tell whether a process runs; one that nobody waited for counts as ended where /proc tells."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return not (_PROC / "self").exists() and send(os.kill, pid, 0)
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def send(how: Callable[[int, int], None], pid: int, number: int) -> bool:
    """Signal a process or a group; False when it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        how(pid, number)
        return True
    return False


def marked(mark: str) -> list[int]:
    """Return the processes that inherited the mark, or one below it; none where /proc is absent."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for pid in _pids():
        try:
            environ = (_PROC / pid / "environ").read_bytes()
        except OSError:
            continue  # gone, another user's, or a sandboxed child that ends with its parent
        for variable in environ.split(b"\0"):
            if variable == wanted or variable.startswith(wanted + b"/"):
                found.append(int(pid))
                break
    return found


def kill_marked(mark: str, *, patience_s: float) -> None:
    """Wait for the marked processes to end by themselves, then kill what is left and wait again."""
    deadline = time.monotonic() + patience_s
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        send(os.kill, pid, signal.SIGKILL)
    deadline = time.monotonic() + 2
    while left and marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)


def _pids() -> list[str]:
    try:
        return [name for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208  (no Paths)
    except OSError:
        return []


if __name__ == "__main__":
    main(sys.argv[1:])
