"""Where the stack keeps its files under CONTINUITY_HOME."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True)
class HomePaths:
    """The files and folders of one home; nothing here touches the disk."""

    home: Path

    @property
    def stack_lock(self) -> Path:
        """Locked by the supervisor and its watchers as long as anything of the stack may live."""
        return self.home / "stack.lock"

    @property
    def members_lock(self) -> Path:
        """Locked, shared, by everyone who wants the stack to stay."""
        return self.home / "members.lock"

    @property
    def state(self) -> Path:
        """What the supervisor last said of itself, as JSON."""
        return self.home / "stack.json"

    @property
    def logs(self) -> Path:
        """One log a part."""
        return self.home / "logs"

    @property
    def redis(self) -> Path:
        """The private server's data."""
        return self.home / "redis"

    def log(self, part: str) -> Path:
        """Return the log of a part."""
        return self.logs / f"{part}.log"


def home_paths() -> HomePaths:
    """Return the places of the home that the settings name."""
    return HomePaths(home=settings.CONTINUITY_HOME)
