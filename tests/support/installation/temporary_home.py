"""Create a fresh CONTINUITY_HOME with the embedded defaults and run `manage.py` commands on it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

from runs.operations.home.paths import HomePaths
from runs.operations.home.state import StackInfo, is_up, stack_info

ROOT = Path(__file__).parents[3]
_URL = re.compile(r"http://127\.0\.0\.1:\d+")
# Environment variables that would select other backends than the embedded defaults, or test
# settings.
_REMOVED_VARIABLES = re.compile(
    r"^(CONTINUITY_|DATABASE_URL$|REDIS_URL$|CELERY_|DJANGO_|PYTEST|PYTHONDONTWRITE|COV_)"
)


class TemporaryHome:
    """One CONTINUITY_HOME and the commands that were started on it."""

    def __init__(self, home: Path, **env: str) -> None:
        self.paths = HomePaths(home)
        inherited = {
            key: value for key, value in os.environ.items() if not _REMOVED_VARIABLES.match(key)
        }
        self.env = {**inherited, "CONTINUITY_HOME": str(home), **env}
        if os.environ.get("CONTINUITY_CHROMIUM"):
            self.env["CONTINUITY_CHROMIUM"] = os.environ["CONTINUITY_CHROMIUM"]
        self._started: list[RunningCommand] = []

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command without a terminal and wait until it exits."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start(self, *arguments: str, **env: str) -> RunningCommand:
        """Start a long-running command."""
        self._started.append(
            RunningCommand([sys.executable, "manage.py", *arguments], {**self.env, **env})
        )
        return self._started[-1]

    def close(self) -> None:
        """Stop every process that still runs on this home."""
        if is_up(self.paths):
            self.run("down")
        for started in self._started:
            started.process.kill()
            started.process.communicate()

    @property
    def info(self) -> StackInfo:
        """Return the state that the supervisor reports."""
        info = stack_info(self.paths)
        assert info is not None
        return info

    def pid(self, part: str) -> int:
        """Return the process id of a service, of the watcher or of the supervisor."""
        if part == "supervisor":
            return self.info.pid
        return next(service.pid or 0 for service in self.info.services if service.name == part)

    def processes(self) -> list[psutil.Process]:
        """Return every process of the stack, the supervisor first."""
        supervisor = psutil.Process(self.info.pid)
        return [supervisor, *supervisor.children(recursive=True)]


class RunningCommand:
    """A long-running command in its own process group."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.output = ""
        # A shell ignores Ctrl-C in its background jobs, and all their child processes inherit that.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait_for_line(self, word: str) -> str:
        """Return the next output line that contains the word; fail if the output ends first."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.output += line
            if word in line:
                return line
        raise AssertionError(f"{word!r} is not in the output:\n{self.output}")

    def wait_until_ready(self) -> str:
        """Wait until the command is ready and return its address."""
        found = _URL.search(self.wait_for_line("Ready on"))
        assert found
        return found.group()

    def stop(self, number: int = signal.SIGINT, within_s: float = 20) -> int:
        """Send a signal to the command, read its output, and return its exit status."""
        self.process.send_signal(number)
        return self.wait(within_s)

    def wait(self, within_s: float = 20) -> int:
        """Read the output until the command exits, and return its exit status."""
        output, _ = self.process.communicate(timeout=within_s)
        self.output += output
        return self.process.returncode


@contextlib.contextmanager
def temporary_home(home: Path, **env: str) -> Iterator[TemporaryHome]:
    """Yield a home that exists for the length of the block."""
    with contextlib.closing(TemporaryHome(home, **env)) as opened:
        yield opened


def still_running(family: list[psutil.Process], within_s: float = 12) -> list[psutil.Process]:
    """Return the processes that still run after `within_s`; a zombie counts as ended."""
    deadline = time.monotonic() + within_s
    while (
        running := [process for process in family if _lives(process)]
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    return running


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def http_status(url: str) -> int:
    """Return the HTTP status of a GET."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  (our own address)
        return int(answer.status)
