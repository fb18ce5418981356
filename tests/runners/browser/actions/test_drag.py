"""Dragging on a task's page: `browser_drag`, with HTML drag and drop and with the pointer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.lost_input import FALLBACK_WARNINGS, close_session_after, detach
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup

# A card that is moved by HTML drag and drop, into a box that may be far away.
HTML_DRAG = """<div id=card draggable=true role=button>Card</div><div style='height:{gap}px'></div>
<div id=box role=button style='height:80px;width:300px'>Box</div><script>
card.ondragstart = (event) => event.dataTransfer.setData('text/plain', 'card 7');
box.ondragover = (event) => {{ {accept} }};
box.ondrop = (event) => {{ event.preventDefault();
  log.push(`drop:${{event.dataTransfer.getData('text/plain')}}:${{event.isTrusted}}`);
  box.append(card); }};
card.ondragend = () => log.push('dragend');
</script>"""
# The same with the pointer, as libraries for sorting do it: the card follows the mouse.
POINTER_DRAG = """<div id=card role=button style='position:relative;width:80px;touch-action:none'>
Card</div><div style='height:100px'></div><div id=box role=button style='height:80px;width:300px'>
Box</div><script>
let from = null;
card.onpointerdown = (event) => { from = [event.clientX, event.clientY]; };
addEventListener('pointermove', (event) => {
  if (!from) return;
  const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
  card.style.transform = `translate(${x}px, ${y}px)`; });
addEventListener('pointerup', (event) => {
  if (!from) return;
  from = null;
  card.style.visibility = 'hidden';
  const under = document.elementFromPoint(event.clientX, event.clientY);
  card.style.visibility = '';
  log.push(`dropped:${under?.id}:${event.isTrusted}`); });
</script>"""


@pytest.fixture
def start(shared_reader: Reader, shared_page_server: PageServer) -> Any:
    """Return a function that starts a task on markup."""
    return lambda markup: start_on_markup(shared_reader, shared_page_server, markup)


def html_drag(*, gap: int = 50, accept: str = "event.preventDefault()") -> str:
    """Return the page with HTML drag and drop."""
    return HTML_DRAG.format(gap=gap, accept=accept)


@pytest.mark.parametrize("gap", [50, 3000])
def test_a_card_is_dropped_by_html_drag_events_also_far_away(start: Any, gap: int) -> None:
    page = start(html_drag(gap=gap))
    index = page.index()
    output = page("drag", clickId=index["Card"], toClickId=index["Box"])
    assert output == {"dragged": True, "strategy": "cdp_mouse"}
    assert [one for one in page.log if one.startswith("drop")] == ["drop:card 7:true"]
    assert page.log.count("dragend") == 1
    assert page.evaluate("card.parentElement === box")
    page("click", xpath="//*[@id='box']")  # the button is not pressed any more
    assert [one for one in page.log if one.startswith("click")] == ["click:box:true"]


def test_a_card_follows_the_pointer_to_an_element_and_by_an_offset(start: Any) -> None:
    page = start(POINTER_DRAG)
    page("drag", xpath="//*[@id='card']", toXpath="//*[@id='box']")
    assert "dropped:box:true" in page.log
    page = start(POINTER_DRAG)
    page("drag", xpath="//*[@id='card']", dx=70, dy=10)
    assert page.evaluate("card.style.transform") == "translate(70px, 10px)"


def test_a_slider_is_dragged_by_an_offset(start: Any) -> None:
    page = start("<input id=r type=range min=0 max=100 value=50 style='width:200px;margin:0'>")
    page("drag", xpath="//input", dx=50)
    assert 70 <= int(page.evaluate("r.value")) <= 80


@pytest.mark.parametrize(
    ("markup", "expected"),
    [(html_drag(), "drop:card 7:false"), (POINTER_DRAG, "dropped:box:false")],
    ids=["html", "pointer"],
)
def test_without_real_input_a_script_drags_and_says_so(
    start: Any, markup: str, expected: str
) -> None:
    page = start(markup)
    index = page.index()
    detach(page)
    output = page("drag", clickId=index["Card"], toClickId=index["Box"])
    assert output == {"dragged": True, "strategy": "dom_events", "warnings": FALLBACK_WARNINGS}
    assert expected in page.log


def test_a_drop_that_the_page_does_not_accept_is_reported(start: Any) -> None:
    page = start(html_drag(accept=""))
    index = page.index()
    output = page("drag", clickId=index["Card"], toClickId=index["Box"])
    assert output["warnings"] == ["The page did not accept the drop there."]
    assert not [one for one in page.log if one.startswith("drop")]


def test_an_element_is_dragged_inside_of_a_shadow_root_and_of_a_frame(start: Any) -> None:
    shadow = html_drag().partition("<script>")[0]
    script = (
        "const at = (id) => root.getElementById(id); at('card').ondragstart = (event) =>"
        " event.dataTransfer.setData('text/plain', 'x'); at('box').ondragover = (event) =>"
        " event.preventDefault(); at('box').ondrop = () => { at('box').append('Dropped'); };"
    )
    page = start(
        f"<my-box></my-box><template id=t>{shadow}</template><script>const root = document"
        ".querySelector('my-box').attachShadow({mode: 'open'}); root.append(t.content);"
        f"{script}</script><iframe id=f style='height:300px'></iframe>"
    )
    index = page.index()
    page("drag", clickId=index["Card"], toClickId=index["Box"])
    assert "BoxDropped" in "".join(page.index())
    page.evaluate(
        "f.srcdoc = `<div id=card draggable=true role=button>Card</div><div id=box role=button>Box"
        "</div><script>const root = document; " + script.replace("`", "") + "<\\/script>`;"
        " document.querySelector('my-box').remove()"
    )
    page("wait_for_text", text="Card")
    index = page.index()
    page("drag", clickId=index["Card"], toClickId=index["Box"])
    assert "BoxDropped" in "".join(page.index())


def test_an_element_that_another_one_covers_when_the_mouse_comes_is_not_dragged(start: Any) -> None:
    page = start(
        POINTER_DRAG + "<div id=cover style='position:fixed;inset:0;display:none'></div><script>"
        "onmousemove = () => { if (card.dataset.mimo_click_id) cover.style.display = 'block' };"
        "cover.onpointerdown = cover.onclick = () => log.push('cover')</script>"
    )
    index = page.index()
    error = page.error("drag", clickId=index["Card"], toClickId=index["Box"])
    assert (error["errorCode"], error["details"]["effect"]) == ("ELEMENT_NOT_FOUND", "none")
    assert not {"cover", "pointerdown:card:true"} & set(page.log)


@pytest.mark.parametrize("missing", ["from", "to", "covered"])
def test_nothing_is_dragged_if_an_end_is_missing_or_covered(start: Any, missing: str) -> None:
    page = start(html_drag())
    index = page.index()
    change = {
        "from": "card.remove()",
        "to": "box.remove()",
        "covered": "document.body.insertAdjacentHTML('beforeend',"
        " \"<div style='position:fixed;inset:0'>Cover</div>\")",
    }
    page.evaluate(change[missing])
    error = page.error("drag", clickId=index["Card"], toClickId=index["Box"])
    reason = "covered" if missing == "covered" else "gone"
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", reason)
    assert error["details"]["effect"] == "none"
    assert page.log == [one for one in page.log if not one.startswith(("pointerdown", "drop"))]


def test_a_destination_that_disappears_during_the_drag_leaves_the_effect_unknown(
    start: Any,
) -> None:
    page = start(POINTER_DRAG + "<script>onpointerdown = () => box.remove()</script>")
    index = page.index()
    error = page.error("drag", clickId=index["Card"], toClickId=index["Box"])
    assert (error["errorCode"], error["details"]["effect"]) == ("ELEMENT_NOT_FOUND", "unknown")
    assert [one for one in page.log if one.startswith("dropped")]  # the button was released


def test_a_drag_whose_session_is_lost_after_it_started_is_not_repeated(start: Any) -> None:
    page = start(POINTER_DRAG)
    index = page.index()
    close_session_after(page, "mousePressed")
    error = page.error("drag", clickId=index["Card"], toClickId=index["Box"])
    assert (error["errorCode"], error["retryable"]) == ("CDP_UNAVAILABLE", False)
    assert error["details"]["effect"] == "unknown"
    assert page.log.count("pointerdown:card:true") == 1
    assert "pointerdown:card:false" not in page.log


def test_drag_events_that_the_page_dispatches_itself_are_no_drag(start: Any) -> None:
    page = start(
        POINTER_DRAG + "<script>card.addEventListener('pointermove', () =>"
        " card.dispatchEvent(new DragEvent('dragstart', {bubbles: true})))</script>"
    )
    index = page.index()
    dragged = page("drag", clickId=index["Card"], toClickId=index["Box"])
    assert dragged == {"dragged": True, "strategy": "cdp_mouse"}
    assert "dropped:box:true" in page.log
