"""Scrolling a task's page: `browser_scroll`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup

SCREENS = "<body style='margin:0'><style>section {height: 100vh}</style>" + "".join(
    f"<section id=s{number}>Part {number}</section>" for number in range(1, 6)
)
AREA = (
    "<div id=area style='height:200px;overflow:auto'>"
    + "".join(
        f"<p style='margin:0;height:50px'><button id=b{n}>B{n}</button></p>" for n in range(20)
    )
    + "</div>"
)
# Three more rows each time the end is shown, until there are 15; each comes from the server.
FEED = """<body style='margin:0'><div id=rows></div><p id=end>End</p><script>
const rows = document.querySelector('#rows');
const add = () => { for (let n = 0; n < 3; n += 1) rows.insertAdjacentHTML('beforeend',
  `<section style='height:400px'>Row ${rows.children.length + 1}</section>`); };
add();
new IntersectionObserver(async ([seen]) => {
  if (!seen.isIntersecting || rows.children.length >= LIMIT) return;
  await fetch('/plain');
  add();
}).observe(document.querySelector('#end'));
</script>"""


@pytest.fixture
def start(shared_reader: Reader, shared_page_server: PageServer) -> Any:
    """Return a function that starts a task on markup."""
    return lambda markup: start_on_markup(shared_reader, shared_page_server, markup)


def top(page: TaskPage) -> int:
    """Return how many screens are above the visible one."""
    return int(page.evaluate("Math.round(scrollY / innerHeight)"))


def test_a_page_is_scrolled_by_screens_and_to_its_ends(start: Any) -> None:
    page = start(SCREENS)
    down = page("scroll", screens=2)
    assert down == {"moved": True, "screen": "screen 3 of 5", "atEnd": False}
    assert top(page) == 2
    assert page("scroll", screens=-1)["screen"] == "screen 2 of 5"
    bottom = page("scroll", to="bottom")
    assert bottom == {"moved": True, "screen": "screen 5 of 5", "atEnd": True}
    assert page("scroll", screens=1)["moved"] is False
    assert page("scroll", to="top")["screen"] == "screen 1 of 5"
    assert top(page) == 0


def test_an_element_is_scrolled_into_view_also_in_a_frame_and_a_shadow_root(start: Any) -> None:
    page = start(
        f"{SCREENS}<my-box></my-box>"
        "<iframe srcdoc=\"<p style='height:900px'></p><a href=#>In</a>\"></iframe>"
        "<script>document.querySelector('my-box').attachShadow({mode: 'open'}).innerHTML ="
        " '<button>Far</button>'</script>"
    )
    index = page.index()
    page("scroll", clickId=index["Far"])
    assert page.evaluate(
        "document.querySelector('my-box').shadowRoot.firstChild.getBoundingClientRect().y"
        " < innerHeight"
    )
    page("scroll", to="top")
    page("scroll", xpath="//iframe >> //a")
    frame = "document.querySelector('iframe')"
    assert page.evaluate(f"{frame}.getBoundingClientRect().y < innerHeight")
    assert page.evaluate(f"{frame}.contentWindow.scrollY > 0")


def test_the_area_around_an_element_is_scrolled_not_the_page(start: Any) -> None:
    page = start(SCREENS + AREA)
    number = page.index()["B0"]
    output = page("scroll", clickId=number, screens=1)
    assert output == {"moved": True, "screen": "screen 2 of 5", "atEnd": False}
    assert (top(page), page.evaluate("area.scrollTop")) == (0, 200)


def test_in_an_application_whose_own_area_scrolls_that_area_is_the_page(start: Any) -> None:
    page = start(
        "<body style='margin:0;overflow:hidden;height:100vh'>"
        "<main id=main style='height:100vh;overflow-y:scroll'><p style='height:250vh'>"
    )
    assert page("scroll", to="bottom")["atEnd"] is True
    assert page.evaluate("main.scrollTop") > 0


def test_a_page_that_does_not_scroll_says_so(start: Any) -> None:
    page = start("<p>Short")
    output = page("scroll", screens=1)
    assert output == {"moved": False, "screen": "screen 1 of 1", "atEnd": True}


def test_scrolling_until_nothing_new_loads_the_whole_feed(start: Any) -> None:
    page = start(FEED.replace("LIMIT", "15"))
    output = page("scroll", untilNothingNew=True)
    assert page.evaluate("rows.children.length") == 15
    assert (output["moved"], output["atEnd"]) == (True, True)
    assert output["screens"] >= 5
    assert "warnings" not in output


def test_scrolling_a_feed_without_end_stops_at_the_bound_and_says_so(start: Any) -> None:
    page = start(FEED.replace("LIMIT", "Infinity"))
    output = page("scroll", untilNothingNew=True, maxScreens=3)
    assert output["screens"] == 3
    assert output["warnings"] == ["The scrolling ended after 3 screens; there is more below."]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"clickId": 10**6}, "ELEMENT_NOT_FOUND"),
        ({"xpath": "//table"}, "ELEMENT_NOT_FOUND"),
        ({"xpath": "//["}, "INVALID_PARAMETER"),
    ],
)
def test_an_element_that_is_not_there_is_reported(
    start: Any, params: dict[str, Any], code: str
) -> None:
    assert start("<p>x").error("scroll", **params)["errorCode"] == code
