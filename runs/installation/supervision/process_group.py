"""A part as a process group that cannot outlive the stack.

The part leads the group. Beside it sits a leash: a shell of one megabyte that reads from the life
line, a pipe whose other end only the supervisor and its watcher hold. The read returns when both
are gone; then the leash stops the group. As long as the leash lives, the group's number cannot be
given to anybody else.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.installation.supervision.watcher import MARK, kill_marked, send

# $1 is the part, $2 its mark, $3 its temporary folder: let the part drain for 7 s, then kill what
# carries the mark, also outside the group, and last the group, this shell included.
_LEASH = r"""
read -r _
trap '' TERM
kill -TERM "$1" 2>/dev/null
left=70
while [ "$left" -gt 0 ] && kill -0 "$1" 2>/dev/null; do sleep 0.1; left=$((left - 1)); done
for found in $(grep -lsF "$2" /proc/[0-9]*/environ); do
    found=${found#/proc/}
    kill -KILL "${found%/environ}" 2>/dev/null
done
rm -rf "$3"
rmdir "${3%/*}" 2>/dev/null
kill -KILL 0
"""


class ProcessGroup:
    """A started part, its leash and whatever they started."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        mark: str,
        log_fd: int,
        pass_fds: Sequence[int],
        scratch: Path,
    ) -> None:
        self._mark = mark
        self._scratch = scratch
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(mode=0o700)
        self._process = subprocess.Popen(
            argv,
            env={**env, MARK: mark, "TMPDIR": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            pass_fds=pass_fds,
            process_group=0,
        )
        self._leash: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The part's process, and the number of its group."""
        return self._process.pid

    def tie(self, *, life_line: int, lock_fd: int) -> None:
        """Put the leash on; it keeps the stack's lock, so that nobody starts beside our remains."""
        arguments = [str(self.pid), f"{MARK}={self._mark}", str(self._scratch)]
        try:
            self._leash = subprocess.Popen(
                ["/bin/sh", "-c", _LEASH, "leash", *arguments],
                env={"PATH": os.defpath},
                stdin=life_line,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[lock_fd],
                process_group=self.pid,
            )
        except (OSError, subprocess.SubprocessError):
            self._leash = None  # the part is gone already; poll() will say so

    def is_tied(self) -> bool:
        """Tell whether the leash lives."""
        return self._leash is not None and self._leash.poll() is None

    def poll(self) -> int | None:
        """Return the part's exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def ask_to_end(self) -> None:
        """Send SIGTERM to the part alone: what it started is its own to end in good order."""
        if self.poll() is None:
            send(os.kill, self.pid, signal.SIGTERM)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the part to end; False when it did not in time."""
        try:
            self._process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return False
        return True

    def clear(self, *, patience_s: float = 1.5) -> None:
        """Kill the part if it still runs, and whatever it left behind, temporary files included."""
        if self.poll() is None:
            send(os.kill, self.pid, signal.SIGKILL)
            self._process.wait()
        kill_marked(self._mark, patience_s=patience_s)
        if self.is_tied():
            send(os.killpg, self.pid, signal.SIGKILL)
        if self._leash is not None:
            self._leash.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)


def describe_exit(status: int) -> str:
    """Return an exit status in words: "exit 1", "killed by SIGKILL"."""
    if status >= 0:
        return f"exit {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
