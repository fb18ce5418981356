"""Fixtures that a module shares: one page server and one browser session for all its tests.

For tests that leave nothing behind in the session but the page that they opened.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runners.browser.pool.runtime import BrowserRuntime
from runners.invocation.event_loop import LoopThread
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, serve_pages


@pytest.fixture(scope="module")
def shared_page_server() -> Iterator[PageServer]:
    """Yield a web server for all tests of the module."""
    with serve_pages() as server:
        yield server


@pytest.fixture(scope="module")
def shared_reader(browser_loop: LoopThread, browser_runtime: BrowserRuntime) -> Iterator[Reader]:
    """Yield a reader whose session all tests of the module use."""
    opening = browser_runtime.open_session(run_id="run_test", trust="local", max_tabs=20)
    session = browser_loop.submit(opening).result(30)
    yield Reader(browser_loop, session)
    browser_loop.submit(session.close()).result(30)
