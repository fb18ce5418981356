"""Where a runner started by root creates its control groups, by the version that the machine
has."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.docker_runner.errors import IsolationMissing
from runners.docker_runner.isolation.base import MIB, Limits
from runners.docker_runner.isolation.control_groups import find_control_groups

LIMITS = Limits(processes=9, memory_bytes=64 * MIB)


def new_groups(tree: Path) -> list[tuple[Path, dict[str, int]]]:
    """Return the parent and the limits of each control group of a command."""
    new = find_control_groups(LIMITS, tree).new()
    return [(Path(folder).parent, dict(limits)) for folder, limits in new.items()]


def test_version_1_has_a_tree_per_controller(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    assert new_groups(tmp_path) == [(tmp_path / "pids", {"pids.max": 9})]
    (tmp_path / "memory").mkdir()
    assert new_groups(tmp_path)[1] == (tmp_path / "memory", {"memory.limit_in_bytes": 64 * MIB})


def test_version_2_has_one_tree(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    (tmp_path / "cgroup.subtree_control").write_text("cpu pids\n")
    assert new_groups(tmp_path) == [(tmp_path, {"pids.max": 9})]
    (tmp_path / "cgroup.subtree_control").write_text("cpu pids memory\n")
    assert new_groups(tmp_path) == [(tmp_path, {"pids.max": 9, "memory.max": 64 * MIB})]


def test_the_runner_does_not_start_where_it_can_create_no_group(tmp_path: Path) -> None:
    with pytest.raises(IsolationMissing, match="another user than root"):
        find_control_groups(LIMITS, tmp_path / "none")


def test_empty_groups_of_earlier_runners_are_removed(tmp_path: Path) -> None:
    leftover = tmp_path / "pids" / "continuity-runner-1-abc"
    leftover.mkdir(parents=True)
    find_control_groups(LIMITS, tmp_path)
    assert not leftover.exists()
