"""The paths of the stack's files in CONTINUITY_HOME."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True)
class HomePaths:
    """The files and folders of one home. Computes paths only; does not touch the disk."""

    home: Path

    @property
    def stack_lock(self) -> Path:
        """Held exclusively by the supervisor and its watcher while a process of theirs may run."""
        return self.home / "stack.lock"

    @property
    def members_lock(self) -> Path:
        """Held, shared, by every process that needs the stack to stay up."""
        return self.home / "members.lock"

    @property
    def state(self) -> Path:
        """The supervisor's state file, JSON."""
        return self.home / "stack.json"

    @property
    def logs(self) -> Path:
        """The folder of the services' logs."""
        return self.home / "logs"

    @property
    def redis(self) -> Path:
        """The data folder of the private Redis server."""
        return self.home / "redis"

    def log(self, service: str) -> Path:
        """Return the log file of a service."""
        return self.logs / f"{service}.log"


def home_paths() -> HomePaths:
    """Return the paths of the home that the settings name."""
    return HomePaths(home=settings.CONTINUITY_HOME)
