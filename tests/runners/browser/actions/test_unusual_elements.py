"""Elements that are hard to see or to reach: forms named like built-ins, scaled pages and frames,
editors, checkboxes that reject a change, very many elements."""

from __future__ import annotations

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup

NAMES = (
    "getAttribute",
    "setAttribute",
    "parentNode",
    "ownerDocument",
    "assignedSlot",
    "host",
    "getRootNode",
    "contains",
    "form",
    "control",
    "labels",
    "getClientRects",
    "scrollIntoView",
    "style",
    "focus",
    "elements",
    "shadowRoot",
    "isContentEditable",
    "target",
    "mode",
)
FORM = f"<form id=f target=_blank>{''.join(f'<input name={name}>' for name in NAMES)}</form>"
FRAME = (
    "<iframe style='width:300px;height:200px;{}' srcdoc=\"<p style='height:90px'></p>"
    "<button id=b>B</button><p style='height:400px'></p><button>C</button>\"></iframe>"
)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["cdp_mouse", "dom_click"])
def test_a_form_whose_fields_are_named_like_properties_is_clicked(
    reader: Reader, page_server: PageServer, strategy: str
) -> None:
    page = start_on_markup(reader, page_server, FORM)
    assert page("click", xpath="//form", strategy=strategy)["clicked"] is True


@pytest.mark.slow
def test_such_a_form_over_another_element_is_reported_as_the_cover(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, f"{FORM}<button id=b>Out</button>")
    number = page.index()["Out"]
    page.evaluate(
        "Element.prototype.setAttribute.call(f, 'style',"
        " 'position:fixed;inset:0;z-index:9;background:#fff')"
    )
    details = page.error("click", clickId=number)["details"]
    assert (details["reason"], details["effect"]) == ("covered", "none")
    assert "Out" not in page.index()


@pytest.mark.parametrize("style", ["html{zoom:2}", "body{zoom:.5}", "body{transform:scale(.7)}"])
def test_elements_of_a_zoomed_page_are_clicked(
    reader: Reader, page_server: PageServer, style: str
) -> None:
    page = start_on_markup(
        reader, page_server, f"<style>{style}</style><p style='height:300px'></p><button id=b>B"
    )
    page.click("B")
    assert page.log.count("click:b:true") == 1


@pytest.mark.parametrize(
    "style",
    ["transform:scale(.5);transform-origin:0 0", "zoom:1.5", "border:10px solid;padding:40px"],
)
def test_elements_in_a_scaled_frame_are_clicked_at_their_displayed_position(
    reader: Reader, page_server: PageServer, style: str
) -> None:
    page = start_on_markup(reader, page_server, FRAME.format(style))
    page("wait_for_loaded")
    page.evaluate(
        "document.querySelector('iframe').contentDocument.addEventListener('click',"
        " (event) => log.push(`inner:${event.target.textContent}`))"
    )
    ids = page.index()
    for text in ("B", "C"):
        page("click", clickId=ids[text])
    assert [one for one in page.log if one.startswith("inner")] == ["inner:B", "inner:C"]


def test_the_box_of_an_element_in_a_scaled_frame_is_its_displayed_position(
    reader: Reader, page_server: PageServer
) -> None:
    style = "position:fixed;left:100px;top:50px;border:0;transform:scale(.5);transform-origin:0 0"
    button = "<button style='position:fixed;left:20px;top:40px;width:80px;height:30px'>B"
    page = start_on_markup(
        reader, page_server, f"<iframe style='{style}' srcdoc=\"{button}\"></iframe>"
    )
    page("wait_for_loaded")
    (one,) = page("dom_index")["elements"]
    assert one["bbox"] == {"x": 110, "y": 70, "w": 40, "h": 15}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plaintext-only", "TRUE", "true", ""])
@pytest.mark.parametrize("strategy", ["cdp_key", "dom_input"])
def test_every_kind_of_editor_is_a_field(
    reader: Reader, page_server: PageServer, kind: str, strategy: str
) -> None:
    page = start_on_markup(
        reader, page_server, f'<div id=i aria-label=Note contenteditable="{kind}">old</div>'
    )
    page("type", clickId=page.index()["Note"], text="new 中", strategy=strategy)
    assert page.evaluate("i.innerText").strip() == "new 中"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["date", "time", "month"])
def test_an_invalid_value_leaves_the_field_unchanged(
    reader: Reader, page_server: PageServer, kind: str
) -> None:
    before = {"date": "2026-01-02", "time": "09:30", "month": "2026-01"}[kind]
    page = start_on_markup(reader, page_server, f"<input id=i type={kind} value='{before}'>")
    error = page.error("type", xpath="//input", text="2026-02-30")
    assert error["errorCode"] == "INVALID_PARAMETER"
    assert page.evaluate("i.value") == before
    assert not [one for one in page.log if one.startswith(("input", "change"))]


@pytest.mark.slow
def test_a_checkbox_that_rejects_the_change_is_reported(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<label><input id=c type=checkbox onclick='return false'> Agree</label>",
    )
    output = page("type", xpath="//input", text="true")
    assert output["warnings"] == ["“Agree” was clicked, but its state did not change."]


def test_a_field_that_keeps_its_state_in_a_script_accepts_the_text(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<input id=i><script>const own = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype"
        ", 'value'); let known = '', state = ''; Object.defineProperty(i, 'value', {get() { return"
        " own.get.call(this); }, set(to) { known = String(to); own.set.call(this, to); }});"
        "i.addEventListener('input', () => { const now = own.get.call(i); if (now === known)"
        " own.set.call(i, state); else known = state = now; })</script>",
    )
    for strategy in ("cdp_key", "dom_input"):
        page("type", xpath="//input", text=f"héllo {strategy}", strategy=strategy)
        assert page.evaluate("state") == f"héllo {strategy}"


@pytest.mark.slow
def test_ten_thousand_elements_are_indexed_in_time_and_the_last_is_clicked_by_xpath(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<body><script>for (let at = 0; at < 10000; at += 1) document.body.append(Object.assign("
        "document.createElement('button'), {id: `b${at}`, textContent: at}))</script>",
    )
    assert len(page("dom_index")["elements"]) == 2000
    page("click", xpath="//button[10000]")
    assert page.log.count("click:b9999:true") == 1
    in_viewport = page("dom_index", scope="viewport")["elements"]
    assert "9999" in [one["text"] for one in in_viewport]
