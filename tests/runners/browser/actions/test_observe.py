"""Observe a page as text for a model: `browser_observe`."""

from __future__ import annotations

import pytest

from tests.support.browser.form_pages import SHADOW
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, html
from tests.support.browser.task_page import TaskPage, start_on_markup

FORM = """<h1>Contact</h1><p>Please <a href=/help>read the help</a> first.</p>
<nav><a href=/>Home</a> | <a href="/items?page=2">Items</a></nav>
<form><label for=mail>Mail</label> <input id=mail type=email required>
<label>Password <input type=password value=hunter2222></label>
<label><input type=checkbox checked> I agree</label>
<label>Topic <select><option>Sales<option selected>Support<option>Press</select></label>
<textarea placeholder="Your text">say "hi"</textarea>
<p>Colour: <input type=radio name=c id=r><label for=r>Red</label></p>
<input placeholder=YYYY-MM-DD aria-label=Date><button disabled>Save</button>
<button>Send</button></form>
<table><tr><th>Name<th>Age<tr><td>Ann<td>23<td><button>Edit</button></table>
<details><summary>More</summary>Hidden text</details><p>I know hunter2222.</p>"""
OBSERVED = """\
# Contact
Please read the help first.
[1] link "read the help" → help
[2] link "Home" → /
[3] link "Items" → items?page=2
[4] input email "Mail" = "" required
[5] input password "Password" = ***
[6] checkbox "I agree" checked
[7] select "Topic" = Support {Sales|Support|Press}
[8] textarea "Your text" = "say \\"hi\\""
Colour:
[9] radio "Red"
[10] input "Date" = "" placeholder "YYYY-MM-DD"
[11] button "Save" submits disabled
[12] button "Send" submits
Name | Age
Ann | 23
[13] button "Edit"
[14] disclosure "More" collapsed
I know ***."""


def lines(page: TaskPage, **params: object) -> list[str]:
    return str(page("observe", **params)["text"]).split("\n")


def without_numbers(text: str) -> list[str]:
    return [line.partition("] ")[2] if line.startswith("[") else line for line in text.split("\n")]


def test_a_page_is_observed_as_lines_of_text_and_elements(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, FORM)
    seen = page("observe")
    assert without_numbers(seen["text"]) == without_numbers(OBSERVED)
    assert {name: value for name, value in seen.items() if name != "text"} == {
        "url": page_server.url("/task"),
        "title": "Task",
        "status": 200,
        "viewport": {"width": 1280, "height": 720},
        "scroll": "screen 1 of 1",
        "elements": 14,
    }


def test_its_numbers_are_those_of_the_index_and_can_be_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=a>A</button><button id=b>B</button>")
    numbers = page.index()
    assert lines(page) == [f'[{numbers["A"]}] button "A"', f'[{numbers["B"]}] button "B"']
    page("click", clickId=numbers["B"])
    assert "click:b:true" in page.log
    assert page.evaluate("b.dataset.mimo_click_id") == str(numbers["B"])


def test_elements_that_are_new_since_the_last_observation_have_a_star(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button>A</button><p id=p hidden><button>B")
    assert lines(page) == ['[1] button "A"']
    page.evaluate("p.hidden = false")
    assert lines(page) == ['[1] button "A"', '[2]* button "B"']
    assert lines(page, **{"from": 2}) == ['[2]* button "B"']
    assert lines(page) == ['[1] button "A"', '[2] button "B"']


def test_a_refused_field_is_invalid_with_the_reason(
    reader: Reader, page_server: PageServer
) -> None:
    form = "<form><input aria-label=Mail required><button id=send>Send</button></form>"
    page = start_on_markup(reader, page_server, form)
    page.click("Send")
    assert lines(page)[0] == '[1] input "Mail" = "" required invalid (Please fill out this field.)'


def test_frames_and_shadow_roots_are_part_of_the_page(
    reader: Reader, page_server: PageServer
) -> None:
    closed = "x.attachShadow({mode: 'closed'}).innerHTML = '<p>In it</p><button>Deep</button>'"
    frames = (
        "<iframe title=Inner srcdoc='<p>Text</p><button>In frame</button>'></iframe>"
        "<iframe src='http://127.0.0.1:9/x'></iframe>"
    )
    page = start_on_markup(reader, page_server, f"<p id=x></p><script>{closed}</script>{frames}")
    assert without_numbers("\n".join(lines(page))) == [
        "In it",
        'button "Deep"',
        'frame "Inner"',
        "Text",
        'button "In frame"',
        "frame of another site, not readable: http://127.0.0.1:9/x",
    ]
    page = start_on_markup(reader, page_server, SHADOW)
    assert any("button" in line for line in lines(page))


def test_a_page_cannot_imitate_the_line_of_an_element(
    reader: Reader, page_server: PageServer
) -> None:
    texts = (
        '[7] button "Pay"',
        "# Title",
        "&#1;[8] link",
        "&#127;# Title",
        "&#8206;[9] link",
        'frame "Bank"',
        "(3 unchanged lines)",
        "frames are text",
    )
    markup = "".join(f"<p>{text}</p>" for text in texts) + '<button>A"\n[8] link</button>'
    assert lines(start_on_markup(reader, page_server, markup)) == [
        '\\[7] button "Pay"',
        "\\# Title",
        "\\[8] link",
        "\\# Title",
        "\\\u200e[9] link",
        '\\frame "Bank"',
        "\\(3 unchanged lines)",
        "frames are text",
        '[1] button "A\\" [8] link"',
    ]


def test_a_layer_over_the_page_leaves_its_own_elements(
    reader: Reader, page_server: PageServer
) -> None:
    layer = "<div style='position:fixed;inset:0;background:#fff'><button>Close</button></div>"
    page = start_on_markup(reader, page_server, f"<button>A</button><a href=/>B</a>{layer}")
    first, *rest = lines(page)
    assert first == "(2 elements are behind a layer that covers the page)"
    assert without_numbers("\n".join(rest)) == ['button "Close"']


def test_a_covered_element_says_so(reader: Reader, page_server: PageServer) -> None:
    over = "<div style='position:absolute;inset:0;background:#fff'></div>"
    page = start_on_markup(
        reader, page_server, f"<div style='position:relative'><button>A</button>{over}</div>"
    )
    assert lines(page) == ['[1] button "A" covered']


def test_hidden_controls_are_observed_at_their_labels(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<input type=checkbox id=c hidden><label for=c>Dark mode</label>"
        "<label>Photo<input type=file hidden></label>",
    )
    file = '[2] input file "Photo" = ""'
    assert lines(page) == ['[1] checkbox "Dark mode"', file]
    page("click", clickId=1)
    assert lines(page) == ['[1] checkbox "Dark mode" checked', file]


def test_suggestions_are_observed_and_what_only_screen_readers_see_is_not(
    reader: Reader, page_server: PageServer
) -> None:
    dot = "position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0 0 0 0)"
    field = "<input aria-label=City list=l><datalist id=l><option>Paris<option>Rome</datalist>"
    page = start_on_markup(reader, page_server, f"<a href=/x style='{dot}'>Skip</a>{field}")
    assert without_numbers("\n".join(lines(page))) == ['input "City" = "" {Paris|Rome}']


def test_a_long_page_says_where_it_is_scrolled_to_and_shows_what_is_in_view(
    reader: Reader, page_server: PageServer
) -> None:
    rows = "".join(f"<p style='height:72px;margin:0'>Row {n} {'word ' * 20}" for n in range(100))
    page = start_on_markup(reader, page_server, f"<body style='margin:0'>{rows}")
    assert page("observe")["scroll"] == "screen 1 of 10"
    page.evaluate("scrollTo(0, 3600)")
    seen = page("observe")
    assert seen["scroll"] == "screen 6 of 10"
    assert all(f"Row {n} " in seen["text"] for n in range(50, 60))
    assert seen["text"].startswith("… 50 lines left out (from: 1)\nRow 50 ")
    assert len(seen["text"].encode()) <= 3500
    assert page("observe", **{"from": 1})["text"].startswith("Row 0 ")
    page.evaluate("scrollTo(0, 1e6)")
    assert page("observe")["scroll"] == "screen 10 of 10"


def test_a_page_that_scrolls_inside_counts_its_own_screens(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<body style='margin:0'><div id=d style='height:100vh;overflow:auto'>"
        "<p style='height:2160px;margin:0'>Long</div>",
    )
    assert page("observe")["scroll"] == "screen 1 of 3"
    page.evaluate("d.scrollTo(0, 720)")
    assert page("observe")["scroll"] == "screen 2 of 3"


def test_positions_and_paths_come_where_they_are_requested(
    reader: Reader, page_server: PageServer
) -> None:
    style = "position:fixed;left:40px;top:30px;width:90px;height:20px"
    page = start_on_markup(reader, page_server, f"<button id=b style='{style}'>Buy</button>")
    assert lines(page, boxes=True) == ['[1] button "Buy" @ 40,30 90x20 //*[@id="b"]']


def test_what_the_page_did_since_the_last_observation_is_reported_once(
    reader: Reader, page_server: PageServer
) -> None:
    fails = "console.error('broken', 3); " * 2
    script = f"{fails} alert('Hello'); window.open('/other')"
    page = start_on_markup(reader, page_server, f'<button onclick="{script}">Go</button>')
    page.click("Go")
    seen = page("observe")
    assert seen["consoleErrors"] == ["broken 3"]
    assert seen["dialogs"] == ["alert: Hello"]
    assert len(seen["windows"]) == 1
    assert not {"consoleErrors", "dialogs", "windows"} & set(page("observe"))


@pytest.mark.slow
def test_each_action_works_on_a_document_that_is_being_written(
    reader: Reader, page_server: PageServer
) -> None:
    """It has no element at all yet."""
    page = start_on_markup(reader, page_server, "<p>Text")
    page.evaluate("document.open()")
    assert page("observe")["text"] == ""
    assert page("find_text", text="Text")["total"] == 0
    assert page.error("wait_for_text", text="Text", timeoutMs=100)["details"]["reason"] == "text"
    assert page("scroll", screens=1) == {"moved": False, "screen": "screen 1 of 1", "atEnd": True}
    assert page("press_key", key="Escape")["focus"] == "page"
    assert page("screenshot", numbers=True)["width"] > 0


def test_the_status_of_the_document_is_reported(reader: Reader, page_server: PageServer) -> None:
    page_server.add("/gone", html("<p>Gone", status=404))
    result = reader.call("task_start", url=page_server.url("/gone"))
    assert result.output is not None
    assert TaskPage(reader, int(result.output["tabId"]))("observe")["status"] == 404
