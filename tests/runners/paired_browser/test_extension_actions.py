"""The browser actions in a real Chromium with the extension, in a tab that is not shown."""

from __future__ import annotations

import pytest

from tests.support.browser.page_actions import LOG
from tests.support.browser.page_server import PageServer
from tests.support.extension.extension_fixtures import ExtensionTask


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


@pytest.mark.slow
def test_a_window_that_a_page_opens_is_a_tab_of_the_task(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    opening = "<title>Opener</title><button onclick='window.open(\"/plain\")'>Open</button>"
    extension_task.start(page_server.add("/opener", opening))
    (warning,) = extension_task("click", clickId=extension_task.index()["Open"])["warnings"]
    tabs = extension_task("list_tabs")["tabs"]
    assert [tab.get("current") for tab in tabs] == [True, None]
    assert warning == f"The page opened the tab {tabs[1]['tabId']} with {tabs[1]['url']}."
    extension_task.tab_id = tabs[1]["tabId"]
    assert extension_task("switch_tab")["title"] == "Plain"
    assert "Nothing but text." in extension_task("observe")["text"]
    assert extension_task("close_tab")["tabId"] == tabs[0]["tabId"]
    extension_task.tab_id = tabs[0]["tabId"]
    assert extension_task.error("close_tab")["code"] == "INVALID_PARAMETER"


@pytest.mark.slow
def test_a_click_by_the_pixels_of_a_smaller_picture_hits_what_is_there(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    button = "<button style='position:fixed;left:600px;top:300px;width:80px;height:40px'>B</button>"
    extension_task.start(page_server.add("/pixels", f"<title>P</title>{LOG}{button}"))
    extension_task("observe")
    picture = extension_task("screenshot", numbers=True, longEdge=640)
    assert max(picture["width"], picture["height"]) == 640
    extension_task("click", x=320, y=160)
    assert extension_task.evaluate("log.filter((one) => one.startsWith('click')).length") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("size", "is_stored"), [(262_143, False), (262_144, True)])
def test_a_long_text_is_uploaded(
    extension_task: ExtensionTask, page_server: PageServer, size: int, is_stored: bool
) -> None:
    extension_task.start(page_server.add("/long", f"<title>L</title><p>{'x' * size}"))
    text = extension_task("readability_extract")
    assert text["contentLengthBytes"] == size
    assert (text["truncated"], "upload" in text, "markdown" in text) == (
        is_stored,
        is_stored,
        not is_stored,
    )


@pytest.mark.slow
def test_a_text_beyond_the_limit_is_refused(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    extension_task.start(page_server.add("/huge", f"<title>H</title><p>{'x' * 2_097_153}"))
    error = extension_task.error("readability_extract")
    assert (error["code"], error["retryable"]) == ("READABILITY_TOO_LARGE", False)


@pytest.mark.slow
def test_a_secret_is_covered_in_pictures_and_masked_in_markup(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    field = "<input type=password value=open-sesame-7>"
    extension_task.start(page_server.add("/secret", f"<title>S</title>{field}"))
    extension_task("screenshot")
    assert extension_task.evaluate("document.querySelector('input').style.cssText") == ""
    html = extension_task.perform("browser_get_html", {"tabId": extension_task.tab_id})
    _, markup = extension_task.server.files.uploads[f"/{html['actionId']}"]
    assert b"open-sesame-7" not in markup
