"""Measure the pages a second of a complete `batch_extract_pages` run, against raw Playwright with
the same browser and flags.

Our run includes everything: submit, claim, journal and events on a SQLite with fsync, full reading
of each page, the result as an artifact. Raw Playwright reuses its pages and writes nothing; it is
measured twice. `raw`, the floor: goto (load), title, text and a JPEG of the page. `raw_text` is
stricter: goto (load) and one evaluate for title and text, since our runs take screenshots only of
failures.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

_home = tempfile.TemporaryDirectory()
os.environ["CONTINUITY_HOME"] = _home.name
os.environ["CONTINUITY_LOG_LEVEL"] = "ERROR"
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
os.environ.pop("DATABASE_URL", None)
sys.argv[1:1] = ["mcp_stdio"]  # the MCP server's settings: no admin to load

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from playwright.async_api import Browser, Page, async_playwright  # noqa: E402

from decisions.identity.principals import local_principal  # noqa: E402
from runners.browser.pool.chromium import find_chromium, launch_args  # noqa: E402
from runners.invocation.event_loop import get_loop  # noqa: E402
from runs.queries.runs import get_run  # noqa: E402
from runs.submission.submit import submit_run  # noqa: E402
from runs.worker.worker import WorkerProcess  # noqa: E402
from tests.benchmarks.page_server import serve_script_pages  # noqa: E402
from tests.benchmarks.rounds import alternate, ratio, report, spread  # noqa: E402

PAGES = 24
Read = Callable[[Page], Awaitable[None]]


def skip_notification(queue: str, run_id: str) -> None:
    """Replace the wake-up: the worker is in this process and polls the queue itself."""


async def text_and_screenshot(page: Page) -> None:
    """Read title, text and a JPEG, as the floor does."""
    await page.title()
    await page.inner_text("body")
    await page.screenshot(type="jpeg", quality=60)


async def text_only(page: Page) -> None:
    """Read title and text in one round trip."""
    await page.evaluate("() => [document.title, document.body.innerText]")


class Raw:
    """Plain Playwright on a separate browser that stays open, like ours."""

    def __init__(self) -> None:
        self._browser: Browser | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the process's event loop, which our code uses too."""
        return get_loop().submit(work).result()

    async def start(self) -> None:
        """Launch the browser."""
        driver = await async_playwright().start()
        self._browser = await driver.chromium.launch(
            executable_path=str(find_chromium().path), args=list(launch_args())
        )

    async def visit(self, urls: list[str], concurrency: int, read: Read) -> None:
        """Read all pages with this many tabs of one context."""
        if self._browser is None:
            await self.start()
        assert self._browser is not None
        context = await self._browser.new_context(viewport={"width": 1280, "height": 720})
        remaining = list(urls)

        async def tab() -> None:
            page = await context.new_page()
            while remaining:
                await page.goto(remaining.pop(), wait_until="load")
                await read(page)

        await asyncio.gather(*(tab() for _ in range(concurrency)))
        await context.close()


def ours(worker: WorkerProcess, urls: list[str], concurrency: int) -> float:
    """Return pages per second of a run, from its submit to its end."""
    principal = local_principal()
    start = time.perf_counter()
    submitted = submit_run(
        principal=principal,
        template_id="batch_extract_pages",
        inputs={"urls": urls, "concurrency": concurrency},
        options={"mode": "async"},
    )
    worker.work()
    elapsed = time.perf_counter() - start
    run = get_run(principal=principal, run_id=submitted.run_id)
    if run["status"] != "succeeded":
        raise RuntimeError(str(run["error"]))
    return len(urls) / elapsed


def main() -> None:
    """Measure and report, for 1 and 4 tabs on fast pages and 5 on pages half a second away."""
    settings.CONTINUITY_NOTIFY_WORKERS = f"{__name__}.skip_notification"
    call_command("migrate", verbosity=0)
    worker, raw = WorkerProcess(), Raw()
    worker.open()

    def with_playwright(urls: list[str], concurrency: int, read: Read) -> float:
        start = time.perf_counter()
        raw.run(raw.visit(urls, concurrency, read))
        return len(urls) / (time.perf_counter() - start)

    results: dict[str, Any] = {}
    for name, concurrency, delay_s in (("c1", 1, 0.0), ("c4", 4, 0.0), ("c5_slow", 5, 0.5)):
        with serve_script_pages(PAGES, delay_s=delay_s) as urls:
            ours(worker, urls[:4], concurrency)
            with_playwright(urls[:4], concurrency, text_and_screenshot)
            measured = alternate(
                {
                    "ours": lambda: ours(worker, urls, concurrency),  # noqa: B023
                    "raw": lambda: with_playwright(urls, concurrency, text_and_screenshot),  # noqa: B023
                    "raw_text": lambda: with_playwright(urls, concurrency, text_only),  # noqa: B023
                }
            )
        results[name] = {variant: spread(rates) for variant, rates in measured.items()}
        results[name]["ratio"] = ratio(measured["ours"], measured["raw"])
        results[name]["ratio_to_text"] = ratio(measured["ours"], measured["raw_text"])
    report("batch_pages", unit="pages/s", pages=PAGES, **results, goals={"ratio": ">= 0.95"})
    os._exit(0)  # the browsers end when their pipes close


if __name__ == "__main__":
    main()
