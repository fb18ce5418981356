"""The supervisor's side of its watcher: keep it alive, tell it what runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from runs.installation.home.paths import HomePaths
from runs.installation.supervision import watcher
from runs.installation.supervision.process_group import ProcessGroup


class WatcherProcess:
    """The watcher process, and the life line of the parts, which we hold together with it."""

    def __init__(self, at: HomePaths, *, mark: str, scratch: Path, lock_fd: int) -> None:
        self._argv = [mark, str(at.state), str(scratch)]
        self._lock_fd = lock_fd
        self._life_line, self._held_end = os.pipe()
        self._groups: dict[str, ProcessGroup] = {}
        self._process = self._start()

    def adopt(self, name: str, group: ProcessGroup) -> None:
        """Watch over a part that was just started."""
        self._groups[name] = group
        self._tell(f"add {group.pid} {name}")
        group.tie(life_line=self._life_line, lock_fd=self._lock_fd)

    def release(self, name: str) -> None:
        """Forget a part, before its group's number can become another's."""
        group = self._groups.pop(name, None)
        if group is not None:
            self._tell(f"drop {group.pid} {name}")

    @property
    def pid(self) -> int:
        """The watcher's process."""
        return self._process.pid

    def mend(self) -> bool:
        """Start the watcher and the leashes anew where somebody killed them; True if any was."""
        mended = False
        for group in self._groups.values():
            if group.poll() is None and not group.is_tied():
                group.tie(life_line=self._life_line, lock_fd=self._lock_fd)
                mended = True
        if self._process.poll() is None:
            return mended
        self._close_pipe()
        self._process = self._start()
        for name, group in self._groups.items():
            self._tell(f"add {group.pid} {name}")
        return True

    def farewell(self) -> None:
        """End the watcher; nothing is left to watch over."""
        self._tell("bye 0 0")
        self._close_pipe()
        self._process.wait()
        os.close(self._life_line)
        os.close(self._held_end)

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(watcher.__file__)), *self._argv],
            env={"PATH": os.defpath},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._lock_fd, self._held_end],
            start_new_session=True,
            text=True,
        )

    def _tell(self, line: str) -> None:
        pipe = self._pipe()
        with contextlib.suppress(OSError):  # gone: mend() tells its successor everything
            pipe.write(line + "\n")
            pipe.flush()

    def _close_pipe(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe().close()

    def _pipe(self) -> IO[str]:
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101  (made with PIPE)
        return pipe
