"""The browser actions in a real Chromium with the extension, in a tab that is not shown."""

from __future__ import annotations

import pytest

from tests.support.browser.page_actions import LOG
from tests.support.browser.page_server import PageServer
from tests.support.plugin.extension_fixtures import ExtensionTask

pytestmark = pytest.mark.slow
pytest_plugins = [
    "tests.support.browser.browser_fixtures",
    "tests.support.plugin.extension_fixtures",
]


def test_the_main_actions_work_in_a_tab_that_is_not_shown(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    url = page_server.add(
        "/shop", f"<title>Shop</title>{LOG}<p>Three apples.<button id=b>Buy</button>"
    )
    started = extension_task.start(url)
    assert started["result"]["title"] == "Shop"
    assert '[1] button "Buy"' in extension_task("observe")["text"]
    assert extension_task("click", clickId=1) == {"clicked": True, "strategy": "cdp_mouse"}
    assert "click:b:true" in extension_task.evaluate("log")
    picture = extension_task("screenshot")["upload"]
    assert picture["mimeType"] == "image/jpeg"
    assert extension_task("readability_extract")["markdown"].startswith("Three apples.")
