"""The commands that the fork server of this process started: see `fork_server`."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
POLL_S = 0.02


class ForkServer:
    """The fork server; it ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.fork_server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.communicate)

    def ask(self, **request: Any) -> Any:
        """Send a request and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())


@cache
def fork_server() -> ForkServer:
    """Start the fork server of this process."""
    return ForkServer()


class ForkedProcess:
    """A management command in a session of its own, with the methods of `subprocess.Popen`."""

    def __init__(self, arguments: list[str], env: dict[str, str], log: Path) -> None:
        self.returncode: int | None = None
        log.touch()
        self.pid: int = fork_server().ask(
            arguments=arguments, environment=env, folder=str(ROOT), log=str(log)
        )

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""
        if self.returncode is None:
            self.returncode = fork_server().ask(pid=self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end and return its exit status.

        Raises:
            subprocess.TimeoutExpired: It still runs.
        """
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("manage.py", timeout)
            time.sleep(POLL_S)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)
