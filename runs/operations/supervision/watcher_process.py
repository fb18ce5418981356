"""The supervisor's side of the watcher: starts the process, and reports to it what runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from runs.operations.home.paths import HomePaths
from runs.operations.supervision import watcher
from runs.operations.supervision.process_group import ProcessGroup


class WatcherProcess:
    """The watcher process, and the liveness pipe that the services' guards read from."""

    def __init__(self, paths: HomePaths, *, mark: str, temp_folder: Path, lock_fd: int) -> None:
        self._argv = [mark, str(paths.state), str(temp_folder)]
        self._lock_fd = lock_fd
        self._liveness_pipe, self._write_end = os.pipe()
        self._groups: dict[str, ProcessGroup] = {}
        self._process = self._start()

    def add(self, name: str, group: ProcessGroup) -> None:
        """Watch a service that was just started, and start its guard."""
        self._groups[name] = group
        self._send(f"add {group.pid} {name}")
        group.start_guard(liveness_pipe=self._liveness_pipe, lock_fd=self._lock_fd)

    def remove(self, name: str) -> None:
        """Stop watching a service, before the system can reuse the number of its group."""
        group = self._groups.pop(name, None)
        if group is not None:
            self._send(f"drop {group.pid} {name}")

    @property
    def pid(self) -> int:
        """The watcher's process id."""
        return self._process.pid

    def restart_killed(self) -> bool:
        """Start the watcher and the guards again where they were killed; True if any was."""
        has_restarted = False
        for group in self._groups.values():
            if group.poll() is None and not group.has_guard():
                group.start_guard(liveness_pipe=self._liveness_pipe, lock_fd=self._lock_fd)
                has_restarted = True
        if self._process.poll() is None:
            return has_restarted
        self._close_pipe()
        self._process = self._start()
        for name, group in self._groups.items():
            self._send(f"add {group.pid} {name}")
        return True

    def stop(self) -> None:
        """End the watcher, once all services have been removed."""
        self._send("bye 0 0")
        self._close_pipe()
        self._process.wait()
        os.close(self._liveness_pipe)
        os.close(self._write_end)

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(watcher.__file__)), *self._argv],
            env={"PATH": os.defpath},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._lock_fd, self._write_end],
            start_new_session=True,
            text=True,
        )

    def _send(self, line: str) -> None:
        pipe = self._pipe()
        with contextlib.suppress(OSError):  # killed: restart_killed() sends everything again
            pipe.write(line + "\n")
            pipe.flush()

    def _close_pipe(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe().close()

    def _pipe(self) -> IO[str]:
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101  (created with PIPE)
        return pipe
