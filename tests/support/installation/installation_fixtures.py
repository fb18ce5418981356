"""Fixtures of the tests of backup and restore."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.services import postgres_server, redis_server
from tests.support.installation.installations import (
    ON_POSTGRESQL,
    Installation,
    installation,
    populated_installation,
)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Start Redis and, on PostgreSQL, a database server; yield their addresses."""
    with ExitStack() as stack:
        if not ON_POSTGRESQL:
            yield {"REDIS_URL": stack.enter_context(redis_server()).url}
            return
        yield {
            "server": stack.enter_context(postgres_server()).url.rpartition("/")[0],
            "REDIS_URL": stack.enter_context(redis_server()).url,
        }


@pytest.fixture(scope="module")
def source_installation(
    tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]
) -> Iterator[Installation]:
    """Yield an installation to create backups of; tests must not change it."""
    with populated_installation(tmp_path_factory.mktemp("old"), servers, "old") as populated:
        yield populated


@pytest.fixture(scope="module")
def backup(source_installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a backup of `source_installation` with its keys; tests must not change it."""
    folder = tmp_path_factory.mktemp("backups") / "whole"
    assert "artifacts   1, 10 bytes" in source_installation.run(
        "backup", str(folder), "--with-keys"
    )
    return folder


@pytest.fixture
def backup_copy(backup: Path, tmp_path: Path) -> Path:
    """Return a copy of the backup `backup` that the test may change."""
    return Path(shutil.copytree(backup, tmp_path / "kept"))


@pytest.fixture(scope="module")
def backup_without_keys(
    source_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Create a backup with default options, thus without keys; tests must not change it."""
    folder = tmp_path_factory.mktemp("backups") / "keyless"
    assert "keys        not in it" in source_installation.run("backup", str(folder))
    return folder


@pytest.fixture
def empty_installation(tmp_path: Path, servers: dict[str, str]) -> Iterator[Installation]:
    """Yield an empty installation."""
    with installation(tmp_path, servers, "new") as empty:
        yield empty
