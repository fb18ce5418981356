"""Where a runner of root's makes its control groups, by how the machine has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.docker_runner.errors import IsolationMissing
from runners.docker_runner.isolation.base import MIB, Limits
from runners.docker_runner.isolation.control_groups import find_control_groups

LIMITS = Limits(processes=9, memory_bytes=64 * MIB)


def made_at(tree: Path) -> list[tuple[Path, dict[str, int]]]:
    """Return the parent and the limits of each group of a command."""
    new = find_control_groups(LIMITS, tree).new()
    return [(Path(folder).parent, dict(limits)) for folder, limits in new.items()]


def test_of_the_first_version_each_controller_has_a_tree(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    assert made_at(tmp_path) == [(tmp_path / "pids", {"pids.max": 9})]
    (tmp_path / "memory").mkdir()
    assert made_at(tmp_path)[1] == (tmp_path / "memory", {"memory.limit_in_bytes": 64 * MIB})


def test_of_the_second_version_there_is_one_tree(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    (tmp_path / "cgroup.subtree_control").write_text("cpu pids\n")
    assert made_at(tmp_path) == [(tmp_path, {"pids.max": 9})]
    (tmp_path / "cgroup.subtree_control").write_text("cpu pids memory\n")
    assert made_at(tmp_path) == [(tmp_path, {"pids.max": 9, "memory.max": 64 * MIB})]


def test_where_none_can_be_made_the_runner_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(IsolationMissing, match="another user than root"):
        find_control_groups(LIMITS, tmp_path / "none")


def test_empty_groups_of_before_are_taken_away(tmp_path: Path) -> None:
    left = tmp_path / "pids" / "continuity-runner-1-abc"
    left.mkdir(parents=True)
    find_control_groups(LIMITS, tmp_path)
    assert not left.exists()
