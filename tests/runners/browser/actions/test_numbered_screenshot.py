"""Screenshots with the numbers of the elements drawn on them, and clicks at a point of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup

# A click anywhere is logged as x,y. The host of the marks is the only child of <html> beside these.
PAGE = """<style>body { margin: 0 } button { position: absolute; left: 100px; top: 200px;
width: 200px; height: 100px }</style><button id=b>Press</button><input type=password value=hunter2>
<script>window.children = []; window.points = [];
new MutationObserver(() => children.push(document.documentElement.children.length))
  .observe(document.documentElement, { childList: true });
addEventListener("click", (event) => points.push([event.clientX, event.clientY, event.target.id]));
</script>"""


@pytest.fixture
def page(reader: Reader, page_server: PageServer) -> TaskPage:
    """Return a page with a button, a password field and a log of clicks."""
    return start_on_markup(reader, page_server, PAGE)


def points(page: TaskPage) -> list[Any]:
    return list(page.evaluate("points"))


def test_the_numbers_are_drawn_for_the_screenshot_only(page: TaskPage) -> None:
    page("observe")
    page("screenshot")
    plain = page.saved()[2]
    page("screenshot", numbers=True)
    assert page.saved()[2] != plain
    assert page.evaluate("document.documentElement.children.length") == 2
    assert max(page.evaluate("children")) == 3
    page("screenshot")
    assert page.saved()[2] == plain


def test_no_picture_for_a_model_is_taken_of_a_page_that_shows_a_secret_of_the_run(
    reader: Reader, page_server: PageServer
) -> None:
    reader.mask = lambda text: text.replace("tangerine-41", "***")
    page = start_on_markup(reader, page_server, "<p>Your code is tangerine-41.</p>")
    error = page.error("screenshot", numbers=True)
    assert error["details"]["reason"] == "secret_on_page"
    page.evaluate("document.body.textContent = 'Your code was accepted.'")
    assert page("screenshot", numbers=True)["artifactId"]


def test_a_click_at_a_point_of_a_shrunk_screenshot_hits_what_is_there(page: TaskPage) -> None:
    taken = page("screenshot", numbers=True, longEdge=640)
    assert (taken["width"], taken["height"]) == (640, 360)
    clicked = page("click", x=100, y=125)  # half of 200, 250
    assert clicked["strategy"] == "cdp_mouse"
    assert points(page) == [[200, 250, "b"]]
    page("screenshot")
    page("click", x=600, y=700)
    assert points(page)[1][:2] == [600, 700]
