"""Fixtures of the tests that back up and restore."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.services import postgres_server, redis_server
from tests.support.installations import ON_POSTGRESQL, Place, installation, working


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """What a fleet has outside; an embedded installation has nothing."""
    with ExitStack() as stack:
        if not ON_POSTGRESQL:
            yield {"REDIS_URL": stack.enter_context(redis_server()).url}
            return
        yield {
            "server": stack.enter_context(postgres_server()).url.rpartition("/")[0],
            "REDIS_URL": stack.enter_context(redis_server()).url,
        }


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Iterator[Place]:
    """An installation to make backups of, and nothing else."""
    with working(tmp_path_factory.mktemp("old"), servers, "old") as place:
        yield place


@pytest.fixture(scope="module")
def whole(old: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it with its keys; not to be changed."""
    folder = tmp_path_factory.mktemp("backups") / "whole"
    assert "artifacts   1, 10 bytes" in old.run("backup", str(folder), "--with-keys")
    return folder


@pytest.fixture
def kept(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "kept"))


@pytest.fixture(scope="module")
def keyless(old: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it as it is made unasked; not to be changed."""
    folder = tmp_path_factory.mktemp("backups") / "keyless"
    assert "keys        not in it" in old.run("backup", str(folder))
    return folder


@pytest.fixture
def new(tmp_path: Path, servers: dict[str, str]) -> Iterator[Place]:
    """An empty one."""
    with installation(tmp_path, servers, "new") as place:
        yield place
