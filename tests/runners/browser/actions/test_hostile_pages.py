"""Actions on hostile pages: pages that change built-ins, forbid scripts, or flood the reader."""

from __future__ import annotations

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, html
from tests.support.browser.task_page import start_on_markup, start_on_url

POLICY = {
    "Content-Security-Policy": "default-src 'none'; require-trusted-types-for 'script'; sandbox"
    " allow-same-origin allow-forms"
}
# Every built-in that a reader might call is replaced.
BROKEN = """<script>for (const owner of [Element, Node, Document, HTMLElement, EventTarget, Array,
 Map, WeakMap, String, JSON, Promise, DocumentFragment, ShadowRoot, HTMLInputElement, XPathResult])
 for (const host of [owner, owner.prototype].filter(Boolean)) for (const name of
  Object.getOwnPropertyNames(host)) { try {
   if (name !== "prototype" && name !== "constructor") Object.defineProperty(host, name,
    {get() { throw new Error("broken"); }, set() {}}); } catch {} }</script>"""
SHADOWED = """<form id=f><input name=getAttribute><input name=children><input name=nodeType>
<input name=isConnected><input name=getRootNode><input name=parentNode><input name=ownerDocument>
<input name=requestSubmit><input name=click><button>Send</button></form>
<img name=evaluate><img name=querySelectorAll><img name=defaultView><img name=activeElement>"""


@pytest.mark.slow
def test_a_page_that_replaces_every_built_in_can_be_used(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, f"<h1>Hi</h1><button>Buy</button><input aria-label=Name>{BROKEN}"
    )
    ids = page.index()
    assert set(ids) == {"Buy", "Name"}
    for strategy in ("cdp_mouse", "dom_click"):
        assert page("click", clickId=ids["Buy"], strategy=strategy)["strategy"] == strategy
    for strategy in ("cdp_key", "dom_input"):
        assert page("type", clickId=ids["Name"], text="x 中", strategy=strategy)["typed"] is True
    assert page("readability_extract")["markdown"] == "# Hi"
    assert len(page("xpath_scan")["elements"]) == 2
    page("get_html")
    assert b"<h1>Hi</h1>" in page.saved()[2]


@pytest.mark.slow
def test_fields_named_like_built_ins_have_no_effect(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, SHADOWED)
    page.click("Send")
    page("wait_for_loaded")
    page = start_on_markup(reader, page_server, SHADOWED)
    page("type", xpath="//form/input[3]", text="x", submit=True, strategy="dom_input")
    page("wait_for_loaded")
    assert "nodeType=x" in page("screenshot")["url"]


def test_a_page_that_forbids_scripts_can_be_used(reader: Reader, page_server: PageServer) -> None:
    markup = (
        "<title>S</title><button>Buy</button><input aria-label=Name><div contenteditable>x</div>"
    )
    page = start_on_url(reader, page_server.add("/strict", html(markup, headers=POLICY)))
    ids = page.index()
    for strategy in ("cdp_mouse", "dom_click"):
        page("click", clickId=ids["Buy"], strategy=strategy)
    for strategy in ("cdp_key", "dom_input"):
        page("type", clickId=ids["Name"], text="你好", strategy=strategy)
        page("type", xpath="//div", text="there", strategy=strategy)
    page("get_html")
    assert b">there</div>" in page.saved()[2]


def test_a_page_that_removes_the_index_numbers_is_clicked_at_the_right_element(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button id=a>A</button><button id=b>B</button><script>new MutationObserver(() => {"
        " for (const one of document.querySelectorAll('[data-mimo_click_id]'))"
        " one.removeAttribute('data-mimo_click_id'); }).observe(document,"
        " {attributes: true, subtree: true})</script>",
    )
    for text in ("B", "A"):
        page.click(text)
    clicks = [one for one in page.log if one.startswith("click")]
    assert clicks == ["click:b:true", "click:a:true"]


def test_an_element_that_slides_under_the_mouse_is_not_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button id=b>Keep</button><button id=d>Delete all</button><script>"
        "addEventListener('pointermove', () => { if (d.dataset.moved) return; d.dataset.moved = 1;"
        " b.before(d); }, true); d.onclick = () => log.push('deleted')</script>",
    )
    page.click("Keep")
    assert "deleted" not in page.log
    assert page.log.count("click:b:true") == 1


@pytest.mark.slow
@pytest.mark.parametrize("script", ["alert(1)", "open('/plain')"])
def test_a_page_that_floods_the_reader_fails_the_action(
    reader: Reader, page_server: PageServer, script: str
) -> None:
    page = start_on_markup(
        reader, page_server, f'<button onclick="for (let i = 0; i < 50; i++) {script}">B</button>'
    )
    result = reader.call("browser_click", tabId=page.tab_id, clickId=page.index()["B"])
    if result.error is not None:  # a window of the page may be reported a moment later
        assert result.error["details"]["reason"].startswith("too_many")
    assert start_on_url(reader, page_server.url("/plain"))("wait_for_loaded") == {
        "status": "complete"
    }


def test_invalid_text_of_a_page_does_no_harm(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button id=b></button><script>b.textContent ="
        " 'a\\ud800b\\u0000c'; document.title = '\\udfff'</script>",
    )
    assert [text.encode() for text in page.index()] == [b"a\xef\xbf\xbdbc"]
