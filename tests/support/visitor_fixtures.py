"""Somebody who is signed in to the admin site; a test module names this one in `pytest_plugins`,
with those of the browser and of REST.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from playwright.async_api import Browser, Page, async_playwright

from decisions.one_time_login import make_login_path
from decisions.principals import Principal
from runners.browser.chromium import find_chromium, launch_args, wants_sandbox
from runners.loop import LoopThread
from tests.support.visiting import Visitor


@pytest.fixture
def visitor(principal: Principal, web: str, browser_loop: LoopThread) -> Iterator[Visitor]:
    """Somebody who came in by a one-time link."""

    async def launch() -> tuple[Any, Browser, Page]:
        driver = await async_playwright().start()
        browser = await driver.chromium.launch(
            executable_path=str(find_chromium().path), args=launch_args(),
            chromium_sandbox=wants_sandbox(),
        )  # fmt: skip
        return driver, browser, await browser.new_page()

    async def leave(driver: Any, browser: Browser) -> None:
        await browser.close()
        await driver.stop()

    driver, browser, page = browser_loop.submit(launch()).result(60)
    person = Visitor(browser_loop, page, web)
    with override_settings(ONE_TIME_LOGIN=True):
        person.open(make_login_path())
        person.do(page.wait_for_url("**/admin/"))
    person.do(page.goto("about:blank"))
    yield person
    person.do(leave(driver, browser))
    assert person.complaints == []
