"""Pages that navigate during an action: to another document, perhaps to one of the product's own
pages, or to a page with a frame that shows one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, serve_pages
from tests.support.browser.task_page import start_on_markup

TRAP = """<body style='margin:0'><button style='position:fixed;inset:0;width:100%;height:100%'
 onmousedown="fetch('/pressed')">Confirm</button><input oninput="fetch('/typed')" autofocus>"""
STAY_BUSY = "const end = performance.now() + 700; while (performance.now() < end);"
MOVING_BUTTON = """<script>let at = 0; setInterval(() => {
 const one = document.querySelector('button');
 if (one) one.style.cssText = `position:fixed;left:${at = (at + 7) % 300}px`; }, 5)</script>"""


@pytest.fixture
def product_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServer]:
    """Serve a page of the product's own origin that records clicks and typed text."""
    with serve_pages() as server:
        monkeypatch.setenv("CONTINUITY_OWN_PORTS", str(server.server_port))
        server.add("/own", TRAP)
        yield server


def input_count(server: PageServer) -> int:
    """Return how often a trap page was clicked or typed in."""
    return server.hits["/pressed"] + server.hits["/typed"]


@pytest.mark.parametrize("after_ms", [0, 60])
def test_an_element_of_a_page_is_not_clicked_after_a_product_page_replaces_it(
    reader: Reader, page_server: PageServer, product_server: PageServer, after_ms: int
) -> None:
    page = start_on_markup(reader, page_server, f"<button>Confirm</button>{MOVING_BUTTON}")
    page.evaluate(
        f"void setTimeout(() => {{ location = '{product_server.url('/own')}' }}, {after_ms})"
    )
    assert page.error("click", xpath="//button")["errorCode"] == "INVALID_TARGET"
    assert (product_server.hits["/own"], input_count(product_server)) == (1, 0)


def test_an_element_of_a_page_is_not_typed_in_after_a_product_page_replaces_it(
    reader: Reader, page_server: PageServer, product_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<input disabled>")
    page.evaluate(f"void setTimeout(() => {{ location = '{product_server.url('/own')}' }}, 50)")
    error = page.error("type", xpath="//input", text="yes", submit=True)
    assert error["errorCode"] == "INVALID_TARGET"
    assert input_count(product_server) == 0


def leaves_on_mouse_over(*, then: str = "") -> str:
    """Return the markup of an indexed button that navigates to a trap when the mouse reaches it."""
    return (
        "<body style='margin:0'><button id=b style='width:500px;height:300px'>B</button><script>"
        "addEventListener('pointermove', () => { if (!b.dataset.mimo_click_id) return;"
        f" location = '/trap'; {then} }}, true)</script>"
    )


def test_a_page_that_is_leaving_since_mouse_over_is_not_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/trap", TRAP)
    page = start_on_markup(reader, page_server, leaves_on_mouse_over(then=STAY_BUSY))
    error = page.error("click", clickId=page.index()["B"])
    assert error["errorCode"] in ("ELEMENT_NOT_FOUND", "NAVIGATION_TIMEOUT")
    assert error["details"]["effect"] == "none"
    page("wait_for_loaded")
    assert (page_server.hits["/trap"], input_count(page_server)) == (1, 0)


def test_the_page_after_one_that_navigates_on_mouse_over_is_not_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/trap", TRAP)
    page = start_on_markup(reader, page_server, leaves_on_mouse_over())
    # The first page may still get the click: it is shown until the next one has answered.
    reader.call("browser_click", tabId=page.tab_id, clickId=page.index()["B"])
    page("wait_for_loaded")
    assert (page_server.hits["/trap"], input_count(page_server)) == (1, 0)


@pytest.mark.parametrize("event", ["keydown", "input"])
@pytest.mark.parametrize("busy", ["", STAY_BUSY])
def test_a_page_that_navigates_during_typing_gets_no_more_keys_nor_does_the_next_one(
    reader: Reader, page_server: PageServer, event: str, busy: str
) -> None:
    page_server.add("/trap", TRAP)
    page = start_on_markup(
        reader,
        page_server,
        f"<input id=i><script>addEventListener('{event}', () => {{ location = '/trap'; {busy} }},"
        " {capture: true, once: true})</script>",
    )
    output = page("type", xpath="//input", text="a longer text", submit=True)
    assert output["warnings"] == ["The page navigated to another document during the typing."]
    page("wait_for_loaded")
    assert (page_server.hits["/trap"], input_count(page_server)) == (1, 0)


def test_a_page_that_navigates_on_focus_of_its_field_gets_no_text(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/trap", TRAP)
    page = start_on_markup(reader, page_server, "<input id=i onfocus=\"location = '/trap'\">")
    error = page.error("type", xpath="//input", text="text")
    assert (error["errorCode"], error["details"]["effect"]) == ("ELEMENT_NOT_FOUND", "none")
    page("wait_for_loaded")
    assert input_count(page_server) == 0


@pytest.mark.slow
def test_a_page_that_is_navigating_to_one_that_does_not_answer_is_not_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/never-there", PageResponse(b"", delay=20.0))
    page = start_on_markup(
        reader, page_server, "<a href=/never-there>Go</a><button id=b>B</button>"
    )
    ids = page.index()
    page("click", clickId=ids["Go"])
    error = page.error("click", clickId=ids["B"])
    assert (error["errorCode"], error["retryable"]) == ("NAVIGATION_TIMEOUT", True)
    assert error["details"]["effect"] == "none"


@pytest.mark.parametrize("depth", [1, 2])
def test_a_page_that_shows_a_product_page_in_a_frame_gets_no_input(
    reader: Reader, page_server: PageServer, product_server: PageServer, depth: int
) -> None:
    frame = "<iframe src='{}' style='width:600px;height:400px'></iframe>"
    page_server.add("/between", frame.format(product_server.url("/own")))
    page = start_on_markup(
        reader, page_server, frame.format(product_server.url("/own") if depth == 1 else "/between")
    )
    reader.wait(_until_shown(reader, product_server.url("/own")))
    for name, args in (
        ("click", {"xpath": "//iframe"}),
        ("type", {"text": "x"}),
        ("hover", {"xpath": "//iframe"}),
        ("drag", {"xpath": "//iframe", "dx": 5}),
        ("press_key", {"key": "Tab"}),
        ("screenshot", {}),
    ):
        assert page.error(name, **args)["errorCode"] == "INVALID_TARGET"
    assert (input_count(product_server), reader.saved) == (0, [])


@pytest.mark.slow
def test_a_window_that_shows_a_product_page_is_neither_read_nor_used(
    reader: Reader, page_server: PageServer, product_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, f"<button onclick=\"window.open('{product_server.url('/own')}')\">B"
    )
    page.click("B")
    assert page("screenshot")["url"] == page_server.url("/task")
    tabs = dict(reader.call("browser_list_tabs").output or {})["tabs"]
    (page.tab_id,) = [one["tabId"] for one in tabs if one["tabId"] != page.tab_id]
    for name, args in (("observe", {}), ("screenshot", {}), ("click", {"xpath": "//button"})):
        assert page.error(name, **args)["errorCode"] == "INVALID_TARGET"
    assert input_count(product_server) == 0


@pytest.mark.parametrize("alias", ["localhost", "127.1", "0x7f.1", "LOCALHOST", "x.localhost"])
def test_product_pages_are_recognized_under_every_host_name(
    reader: Reader, page_server: PageServer, product_server: PageServer, alias: str
) -> None:
    url = product_server.url("/own").replace("127.0.0.1", alias)
    assert (reader.call("task_start", url=url).error or {})["errorCode"] == "INVALID_TARGET"
    assert product_server.hits["/own"] == 0
    page = start_on_markup(reader, page_server, f"<a href='{url}'>Go</a>")
    page.click("Go")
    assert page.error("dom_index")["errorCode"] == "INVALID_TARGET"


@pytest.mark.parametrize(
    "markup",
    [
        "<meta http-equiv=refresh content='0;url={}'>",
        "<script>setTimeout(() => location.replace('{}'))</script>",
    ],
)
def test_a_page_that_navigates_to_a_product_page_gets_no_input(
    reader: Reader, page_server: PageServer, product_server: PageServer, markup: str
) -> None:
    url = page_server.add("/redirects", markup.format(product_server.url("/own")))
    result = reader.call("task_start", url=url)
    if result.output is not None:  # the page had not navigated by then
        result = reader.call("browser_readability_extract", tabId=result.output["tabId"])
    assert (result.error or {})["errorCode"] == "INVALID_TARGET"


async def _until_shown(reader: Reader, url: str) -> None:
    (tab,) = reader.session.open_tabs()
    while url not in [frame.url for frame in tab.page.frames]:
        await asyncio.sleep(0.01)
