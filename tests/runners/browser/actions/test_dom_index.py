"""Index the usable elements of a page: `browser_dom_index`."""

from __future__ import annotations

import pytest

from tests.support.browser.form_pages import SHADOW
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup

MIXED = """<button id=b>Buy</button><a id=a href=/x>Link</a><input id=i placeholder=Name>
<button disabled>Disabled</button><fieldset disabled><button>In disabled</button></fieldset>
<button hidden>Hidden</button><button style="visibility:hidden">Invisible</button>
<button style="width:0;height:0;border:0;padding:0;overflow:hidden">Flat</button>
<div inert><button>Inert</button></div><div aria-hidden=true><button>Aria-hidden</button></div>
<a>No address</a><p>Just text</p><div id=d style="cursor:pointer">Handled by a framework</div>
<div style="position:relative"><button id=c>Covered</button>
<div style="position:absolute;inset:0;background:#fff">over it</div></div>"""


def test_only_usable_elements_are_numbered(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, MIXED)
    assert set(page.index()) == {"Buy", "Link", "Name", "Handled by a framework"}


def test_an_element_has_its_tag_text_xpath_and_box(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<main><p></p><p><button style='position:fixed;left:40px;"
        "top:30px;width:90px;height:20px'>Buy <b>now</b></button></p></main>",
    )
    assert page("dom_index") == {
        "elements": [
            {
                "clickId": 1,
                "tag": "button",
                "text": "Buy now",
                "xpath": "/html[1]/body[1]/main[1]/p[2]/button[1]",
                "bbox": {"x": 40, "y": 30, "w": 90, "h": 20},
            }
        ]
    }


def test_an_element_keeps_its_number_when_it_moves(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader, page_server, "<button id=a>A</button><button id=b>B</button><div id=d></div>"
    )
    before = page.index()
    page.evaluate("d.append(a); b.textContent = 'C'; document.body.prepend(new Option('x'))")
    page.evaluate("document.body.insertAdjacentHTML('afterbegin', '<button>New</button>')")
    after = page.index()
    assert (after["A"], after["C"]) == (before["A"], before["B"])
    assert after["New"] not in before.values()


def test_the_number_of_a_removed_element_is_not_reused(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=a>A</button>")
    first = page.index()["A"]
    page.evaluate("a.outerHTML = '<button>A</button>'")
    second = page.index()["A"]
    page.evaluate("location.reload()")
    page("wait_for_loaded")
    third = page.index()["A"]
    assert first < second < third
    error = page.error("click", clickId=first)
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "gone")


def test_the_page_stores_each_number_in_an_attribute(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=a>A</button>")
    number = str(page.index()["A"])
    assert page.evaluate("a.getAttribute('data-mimo_click_id')") == number
    page("dom_index", assignAttr="data-manus_click_id")
    assert page.evaluate("a.getAttribute('data-manus_click_id')") == number


def test_a_cloned_element_gets_its_own_number(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<button id=a>A</button>")
    number = page.index()["A"]
    page.evaluate("a.after(Object.assign(a.cloneNode(true), {id: 'z', textContent: 'Z'}))")
    assert page.index() == {"A": number, "Z": number + 1}
    assert page.evaluate("z.getAttribute('data-mimo_click_id')") == str(number + 1)
    page.evaluate("z.disabled = true")
    page.index()
    assert page.evaluate("z.hasAttribute('data-mimo_click_id')") is False


def test_frames_of_the_same_origin_and_open_shadow_roots_are_indexed(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, SHADOW)
    assert {"Outer", "Nick name", "Deep field", "Card holder", "Pay now"} <= set(page.index())


def test_nested_closed_shadow_roots_are_indexed(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<x-a></x-a><script>const open = (host, html) => { const root = host.attachShadow("
        "{mode: 'closed'}); root.innerHTML = html; return root; };"
        "const outer = open(document.querySelector('x-a'), '<button>One</button><x-b></x-b>');"
        "open(outer.querySelector('x-b'), '<button>Two</button>')</script>",
    )
    assert set(page.index()) == {"One", "Two"}
    assert page("dom_index")["elements"][1]["xpath"].endswith("/x-a[1] >> /x-b[1] >> /button[1]")


def test_a_frame_of_another_origin_is_not_indexed(reader: Reader, page_server: PageServer) -> None:
    inner = page_server.add("/inner", "<button>Theirs</button>").replace("127.0.0.1", "localhost")
    page = start_on_markup(
        reader, page_server, f"<button>Ours</button><iframe src='{inner}'></iframe>"
    )
    page("wait_for_loaded")
    assert set(page.index()) == {"Ours"}


def test_viewport_mode_lists_visible_elements_and_document_mode_lists_all(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button>Top</button><div style='height:60px;overflow:auto'><p style='height:400px'>long"
        "</p><button>In a box</button></div><p style='height:3000px'></p><button>Far</button>",
    )
    assert set(page.index(scope="viewport")) == {"Top"}
    assert set(page.index(scope="document")) == set(page.index()) == {"Top", "In a box", "Far"}


def test_only_elements_of_an_overlay_are_indexed_under_it(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button>Top</button><p style='height:3000px'></p><button>Far</button><div id=o"
        " style='position:fixed;inset:0;background:#0008'><button>Accept</button></div>",
    )
    assert set(page.index()) == {"Accept"}
    page.evaluate("o.remove()")
    assert set(page.index()) == {"Top", "Far"}


def test_the_value_of_a_secret_field_is_in_no_text(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<input type=password value=hunter2secret><button>Send hunter2secret</button>",
    )
    assert "hunter2secret" not in str(page("dom_index"))
    assert "Send ***" in page.index()


@pytest.mark.slow
def test_a_page_with_too_many_elements_is_truncated_with_a_warning(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<body><script>for (let at = 0; at < 2100; at += 1)"
        "document.body.append(Object.assign(document.createElement('button'),"
        " {textContent: at}))"
        "</script>",
    )
    output = page("dom_index")
    assert len(output["elements"]) == 2000
    assert output["warnings"] == ["100 more elements, further down, were omitted."]
