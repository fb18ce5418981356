"""Fixtures of tests that open forbidden addresses in the browser of a remote caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from runners.browser.pool.runtime import BrowserRuntime
from runners.browser.session.session import OpenBrowserSession
from runners.invocation.event_loop import LoopThread
from runners.network.egress import EgressPolicy
from tests.support.browser.forbidden_server import (
    PUBLIC,
    ForbiddenServer,
    egress_policy_allowing,
    serve_forbidden,
)
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import Page, PageServer


@pytest.fixture
def forbidden_server() -> Iterator[ForbiddenServer]:
    """Yield a server on loopback that counts its visits."""
    with serve_forbidden() as server:
        yield server


@pytest.fixture
def open_remote_reader(
    browser_loop: LoopThread, browser_runtime: BrowserRuntime
) -> Iterator[Callable[[EgressPolicy], Reader]]:
    """Create readers with trust level remote and the test's own egress policy."""
    sessions: list[OpenBrowserSession] = []

    def make(egress: EgressPolicy) -> Reader:
        session = OpenBrowserSession(
            browser_runtime.browser, run_id="run_test", trust="remote", egress=egress
        )
        sessions.append(session)
        return Reader(browser_loop, session, "remote")

    yield make
    for session in sessions:
        browser_loop.submit(session.close()).result(30)


@pytest.fixture
def remote_reader(
    open_remote_reader: Callable[[EgressPolicy], Reader], page_server: PageServer
) -> Reader:
    """Return a reader of a remote caller for whom only the page server is public."""
    return open_remote_reader(
        egress_policy_allowing(page_server.server_port, {"inside.example": "127.0.0.1"})
    )


@pytest.fixture
def publish(page_server: PageServer) -> Callable[[str, Page | str], str]:
    """Publish a page on the public site and return its address."""

    def add(path: str, page: Page | str) -> str:
        return page_server.add(path, page).replace("127.0.0.1", PUBLIC)

    return add
