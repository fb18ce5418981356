"""Control groups for a runner that root started: the kernel counts no processes of root's, so a
limit on their number has to be set on a group.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.docker_runner.errors import IsolationMissing
from runners.docker_runner.isolation.base import Limits

TREE = Path("/sys/fs/cgroup")
_PREFIX = "continuity-runner-"
_WAY_OUT = "Start the runner as another user than root, or where control groups can be made."


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """Where the groups of commands are made.

    Attributes:
        parents: folders of the tree, each with the limits that its groups get.
    """

    parents: Mapping[Path, Mapping[str, Any]]

    def new(self) -> dict[str, Mapping[str, Any]]:
        """Return the groups of one more command, by folder; nothing is made yet."""
        name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
        return {str(parent / name): limits for parent, limits in self.parents.items()}

    def sweep(self) -> None:
        """Take away empty groups that a supervisor which was killed left behind."""
        for parent in self.parents:
            for group in parent.glob(f"{_PREFIX}*"):
                with contextlib.suppress(OSError):  # not empty: another runner's command
                    group.rmdir()


def find_control_groups(limits: Limits, tree: Path = TREE) -> ControlGroups:
    """Return where groups with a limit of processes can be made; of memory too, where possible.

    Raises:
        IsolationMissing: Nowhere.
    """
    if (tree / "cgroup.controllers").is_file():
        found = {tree: {"pids.max": limits.processes}}
        if "memory" in (tree / "cgroup.subtree_control").read_text().split():
            found[tree]["memory.max"] = limits.memory_bytes
    else:
        found = {tree / "pids": {"pids.max": limits.processes}}
        if (tree / "memory").is_dir():
            found[tree / "memory"] = {"memory.limit_in_bytes": limits.memory_bytes}
    groups = ControlGroups(found)
    groups.sweep()
    _try(groups)
    return groups


def _try(groups: ControlGroups) -> None:
    for folder, limits in groups.new().items():
        group = Path(folder)
        try:
            group.mkdir()
        except OSError as error:
            raise _missing(error) from None
        try:
            for name, value in limits.items():
                (group / name).write_text(str(value))
        except OSError as error:
            raise _missing(error) from None
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()


def _missing(error: OSError) -> IsolationMissing:
    return IsolationMissing(
        "Started by root, the number of a command's processes can be limited by a control group"
        f" alone, and none can be made here ({error.strerror}). {_WAY_OUT}"
    )
