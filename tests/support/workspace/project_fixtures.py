"""Fixtures of a developer's project."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runners.browser.pool.runtime import BrowserRuntime
from runners.invocation.event_loop import LoopThread
from tests.support.workspace.project import Project


@pytest.fixture
def game(tmp_path: Path) -> Project:
    """Return an empty project in developer mode."""
    root = tmp_path / "game_project"
    root.mkdir()
    return Project(root)


@pytest.fixture
def game_with_browser(
    game: Project, browser_loop: LoopThread, browser_runtime: BrowserRuntime
) -> Iterator[Project]:
    """Yield the project of a run with a browser session; needs the fixtures of a real Chromium."""
    opening = browser_runtime.open_session(run_id="run_test", trust="local")
    session = browser_loop.submit(opening).result(30)
    game.loop, game.browser = browser_loop, session
    yield game
    browser_loop.submit(session.close()).result(30)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Yield a port that refuses connections: a socket is bound to it but does not listen."""
    with closing(socket.socket()) as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]
