"""The processes of two versions on one PostgreSQL and one Redis."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.services import free_port

ROOT = Path(__file__).parents[3]
START_S = 90.0
STOP_S = 30.0


@dataclass(frozen=True)
class Version:
    """A version's code and the Python that has its packages."""

    name: str
    tree: Path
    python: str = sys.executable
    env: Mapping[str, str] = field(default_factory=dict, compare=False)


class Process:
    """A long-running command of one version."""

    def __init__(self, version: Version, role: str, fleet: Fleet) -> None:
        self.version, self.role = version, role
        self.is_stopped = False
        self.name = f"{version.name} {role} {len(fleet.processes)}"
        self.port = free_port() if role == "serve" else 0
        self.log = fleet.home / f"{self.name.replace(' ', '-')}.log"
        arguments = [role, "--port", str(self.port)] if self.port else [role]
        with self.log.open("wb") as file:
            self.popen = subprocess.Popen(
                [version.python, "manage.py", *arguments],
                cwd=version.tree,
                env=fleet.environment_of(version),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def address(self) -> str:
        """Where a web process serves."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Stop it as an operator does (SIGTERM)."""
        self.is_stopped = True
        self.popen.terminate()
        self.popen.wait(STOP_S)

    def kill(self) -> None:
        """End it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(STOP_S)


class Fleet:
    """All processes of the trial, and the web processes that take requests."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        self.home, self.env = home, env
        self.processes: list[Process] = []
        self._webs: list[Process] = []

    def environment_of(self, version: Version) -> dict[str, str]:
        """Return the environment of a version's processes."""
        return {**self.env, **version.env}

    def command(self, version: Version, *arguments: str) -> str:
        """Run a command of one version and return what it prints; fail if it fails."""
        ran = subprocess.run(
            [version.python, "manage.py", *arguments],
            cwd=version.tree,
            env=self.environment_of(version),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{version.name} {arguments[0]}: {ran.stdout[-2000:]}{ran.stderr}")
        return ran.stdout.strip()

    def start(self, version: Version, *roles: str) -> None:
        """Start processes and wait until the web processes among them serve."""
        before = len(self.processes)
        for role in roles:
            self.processes.append(Process(version, role, self))
        for process in self.processes[before:]:
            if process.role == "serve":
                self._wait_until_served(process)
                self._webs.append(process)

    def stop(self, version: Version, *roles: str) -> None:
        """Stop one process of each of these roles; web processes get no requests before."""
        for role in roles:
            process = next(
                one
                for one in self.processes
                if (one.version, one.role) == (version, role) and one.popen.poll() is None
            )
            if process in self._webs:
                self._webs.remove(process)
                time.sleep(3)  # requests that it serves end
            process.stop()

    def web(self) -> Process:
        """Return one of the web processes that take requests."""
        return random.choice(self._webs)

    def takes_requests(self, web: Process) -> bool:
        """Return whether a web process still takes requests and was not taken out to be stopped."""
        return web in self._webs

    def web_of(self, version: Version) -> Process | None:
        """Return the web process of a version, if it takes requests."""
        return next((web for web in self._webs if web.version == version), None)

    def ended(self) -> list[str]:
        """Name the processes that ended by themselves, or with an error when they were stopped."""
        return [
            f"{process.name} ended with {process.popen.returncode}"
            for process in self.processes
            if process.popen.poll() not in ((0, -signal.SIGTERM) if process.is_stopped else (None,))
        ]

    def complaints(self) -> Iterator[str]:
        """Yield the lines of all logs that tell of an error."""
        for process in self.processes:
            for line in process.log.read_text(errors="replace").splitlines():
                if any(word in line for word in ('"level": "error"', "Error:", "Traceback")):
                    yield f"{process.name}: {line[:400]}"

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.kill()

    def _wait_until_served(self, process: Process) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and process.popen.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"{process.address}/healthz").raise_for_status()
                return
            time.sleep(0.2)
        raise RuntimeError(f"{process.name} does not serve:\n{process.log.read_text()[-2000:]}")
