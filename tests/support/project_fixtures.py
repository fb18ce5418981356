"""Fixtures of a developer's project. A test module names this one in `pytest_plugins`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with nothing in it yet, in developer mode."""
    root = tmp_path / "game_project"
    root.mkdir()
    return Project(root)
