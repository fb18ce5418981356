"""Fixtures for tests that drive a real Chromium: a browser per process, a session per test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from runners.browser.pool.runtime import BrowserRuntime
from runners.browser.session.session import OpenBrowserSession
from runners.invocation.event_loop import LoopThread
from runners.trust_level import TrustLevel
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, serve_pages


@pytest.fixture(scope="session")
def browser_loop() -> Iterator[LoopThread]:
    """Yield a thread with an event loop, shared by all browser tests of this process."""
    loop = LoopThread()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def browser_runtime(browser_loop: LoopThread) -> Iterator[BrowserRuntime]:
    """Yield the browser of this process."""
    runtime = BrowserRuntime()
    yield runtime
    browser_loop.submit(runtime.close()).result(30)


@pytest.fixture
def page_server() -> Iterator[PageServer]:
    """Yield a web server with the pages that are difficult to read."""
    with serve_pages() as server:
        yield server


@pytest.fixture
def open_reader(
    browser_loop: LoopThread, browser_runtime: BrowserRuntime
) -> Iterator[Callable[..., Reader]]:
    """Create readers, each with its own session: `open_reader(trust="remote", max_tabs=2)`."""
    sessions: list[OpenBrowserSession] = []

    def make(*, trust: TrustLevel = "local", max_tabs: int = 20) -> Reader:
        opening = browser_runtime.open_session(run_id="run_test", trust=trust, max_tabs=max_tabs)
        session = browser_loop.submit(opening).result(30)
        sessions.append(session)
        return Reader(browser_loop, session, trust)

    yield make
    for session in sessions:
        browser_loop.submit(session.close()).result(30)


@pytest.fixture
def reader(open_reader: Callable[..., Reader]) -> Reader:
    """Return a reader with its own session."""
    return open_reader()
