"""A service as a process group that cannot outlive the stack.

The service leads the group. A guard process runs beside it: a shell of one megabyte that reads from
a pipe whose other end only the supervisor and its watcher hold. The read returns when both have
ended; then the guard stops the group. While the guard lives, the system cannot give the group's
number to another process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.operations.supervision.watcher import MARK, kill_marked, send_signal

# $1 is the service, $2 its mark, $3 its temporary folder: let the service drain for 7 s, then kill
# the processes with the mark, also outside the group, and last the group with this shell.
_GUARD = r"""
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
    """A started service, its guard, and all processes that the service has started."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        mark: str,
        log_fd: int,
        pass_fds: Sequence[int],
        temp_folder: Path,
    ) -> None:
        self._mark = mark
        self._temp_folder = temp_folder
        shutil.rmtree(temp_folder, ignore_errors=True)
        temp_folder.mkdir(mode=0o700)
        self._process = subprocess.Popen(
            argv,
            env={**env, MARK: mark, "TMPDIR": str(temp_folder)},
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            pass_fds=pass_fds,
            process_group=0,
        )
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The service's process id, which is also the number of the group."""
        return self._process.pid

    def start_guard(self, *, liveness_pipe: int, lock_fd: int) -> None:
        """Start the guard, which reads from `liveness_pipe`. It holds the stack's lock, so that no
        other stack starts while processes of this one remain.
        """
        arguments = [str(self.pid), f"{MARK}={self._mark}", str(self._temp_folder)]
        try:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "guard", *arguments],
                env={"PATH": os.defpath},
                stdin=liveness_pipe,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[lock_fd],
                process_group=self.pid,
            )
        except (OSError, subprocess.SubprocessError):
            self._guard = None  # the service has ended already, as poll() will report

    def has_guard(self) -> bool:
        """Return whether the guard runs."""
        return self._guard is not None and self._guard.poll() is None

    def poll(self) -> int | None:
        """Return the service's exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Send SIGTERM to the service alone, which stops its own child processes in order."""
        if self.poll() is None:
            send_signal(os.kill, self.pid, signal.SIGTERM)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the service to end; False after the timeout."""
        try:
            self._process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Kill the service and all its remaining processes; delete its temporary files."""
        if self.poll() is None:
            send_signal(os.kill, self.pid, signal.SIGKILL)
            self._process.wait()
        kill_marked(self._mark, patience_s=1.5)
        if self.has_guard():
            send_signal(os.killpg, self.pid, signal.SIGKILL)
        if self._guard is not None:
            self._guard.wait()
        shutil.rmtree(self._temp_folder, ignore_errors=True)


def describe_exit(status: int) -> str:
    """Return an exit status as text: "exit 1", "killed by SIGKILL"."""
    if status >= 0:
        return f"exit {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
