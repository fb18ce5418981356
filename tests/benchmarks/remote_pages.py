"""Measure the pages a second that a remote caller's session reads through its proxy, against a
local caller's session in the same browser: the cost of the address check. Same pages, same tool,
same tabs.

The benchmark also fetches a large file, in MB a second, because every byte passes through the
proxy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from runners.browser.pool.runtime import get_runtime
from runners.browser.session.session import OpenBrowserSession
from runners.browser.tools.read_page import ReadPage, read_page
from runners.invocation.event_loop import get_loop
from runners.tools.base import ToolContext
from runners.trust_level import TrustLevel
from tests.benchmarks.page_server import serve_script_pages
from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.support.browser.forbidden_server import PUBLIC, egress_policy_allowing
from tests.support.browser.page_server import PageResponse, serve_pages

PAGES = 24
FILE_MB = 64
FETCH = "async (path) => (await (await fetch(path)).arrayBuffer()).byteLength"


async def no_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
    """Store nothing."""
    return "art_none"


class Caller:
    """A session of one trust level, and the address by which it reaches the page server."""

    def __init__(self, trust: TrustLevel, port: int) -> None:
        self.trust, self.port = trust, port
        self.host = PUBLIC if trust == "remote" else "127.0.0.1"

    def session(self) -> OpenBrowserSession:
        """Return a new session like that of a run."""
        return OpenBrowserSession(
            get_runtime().browser,
            run_id="run_bench",
            trust=self.trust,
            egress=egress_policy_allowing(self.port),
        )

    def own_url(self, url: str) -> str:
        """Return an address of the page server in this caller's form."""
        return url.replace(urlsplit(url).hostname or "", self.host)

    async def read_all(self, urls: list[str], concurrency: int) -> None:
        """Read the pages with this many tabs; the time includes creating the session."""
        session, remaining = self.session(), [self.own_url(url) for url in urls]
        context = ToolContext(
            run_id="run_bench",
            trust=self.trust,
            deadline=time.monotonic() + 600,
            save_artifact=no_artifact,
            emit=lambda type_, data: None,
            browser=session,
        )

        async def tab() -> None:
            while remaining:
                await read_page.function(ReadPage(url=remaining.pop()), context)

        await asyncio.gather(*(tab() for _ in range(concurrency)))
        await session.close()

    async def fetch(self, url: str) -> None:
        """Fetch a large file from a page."""
        session = self.session()
        async with session.tab() as tab:
            await tab.page.goto(self.own_url(url).rpartition("/")[0] + "/plain")
            assert await tab.page.evaluate(FETCH, urlsplit(url).path) == FILE_MB << 20
        await session.close()


def seconds_of(work: Callable[[], Any]) -> float:
    """Run a coroutine on the process's event loop and return its seconds."""
    started = time.monotonic()
    get_loop().submit(work()).result()
    return time.monotonic() - started


def measure_pages(concurrency: int) -> None:
    """Compare reading pages."""
    with serve_script_pages(PAGES) as urls:
        port = int(urlsplit(urls[0]).port or 0)
        callers = [Caller("remote", port), Caller("local", port)]

        def rate(caller: Caller) -> Callable[[], float]:
            return lambda: PAGES / seconds_of(lambda: caller.read_all(urls, concurrency))

        rates = alternate({caller.trust: rate(caller) for caller in callers})
    report(
        "remote_pages",
        concurrency=concurrency,
        unit="pages/s",
        ours=spread(rates["remote"]),
        floor=spread(rates["local"]),
        ratio=ratio(rates["remote"], rates["local"]),
    )


def measure_bytes() -> None:
    """Compare fetching a large file."""
    with serve_pages() as server:
        url = server.url("/file")
        server.pages["/file"] = PageResponse(bytes(FILE_MB << 20), mime="application/octet-stream")
        callers = [Caller("remote", server.server_port), Caller("local", server.server_port)]

        def rate(caller: Caller) -> Callable[[], float]:
            return lambda: FILE_MB / seconds_of(lambda: caller.fetch(url))

        rates = alternate({caller.trust: rate(caller) for caller in callers})
    report(
        "remote_bytes",
        unit="MB/s",
        ours=spread(rates["remote"]),
        floor=spread(rates["local"]),
        ratio=ratio(rates["remote"], rates["local"]),
    )


if __name__ == "__main__":
    for tabs in (1, 4):
        measure_pages(tabs)
    measure_bytes()
    get_loop().submit(get_runtime().close()).result()
