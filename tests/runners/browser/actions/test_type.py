"""Typing into fields of a task's page: `browser_type`."""

from __future__ import annotations

import pytest

from runners.browser.actions.browser_type import NO_EFFECT
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup

TEXTS = [
    pytest.param("plain text", marks=pytest.mark.slow),
    'Tom & "Jerry" <b>\'s</b> 100% {x} [y] \\ ~`|^',
    "你好，世界！输入法",
    pytest.param("日本語 かな 한국어", marks=pytest.mark.slow),
    "🙂👍🏽 👨‍👩‍👧 🇨🇳",
    pytest.param("Äé ñ ø ß ł", marks=pytest.mark.slow),
    pytest.param("mixed 中文 and 🙂 text", marks=pytest.mark.slow),
    pytest.param("x" * 500, marks=pytest.mark.slow),
    "עברית العربية",
]
STRATEGIES = ["cdp_key", "dom_input"]


def one_field(reader: Reader, server: PageServer, field: str) -> TaskPage:
    """Start a task on a page with a form around one field of the id `i`."""
    return start_on_markup(
        reader,
        server,
        f"<form id=f action=/done>{field}<button>Send</button></form>"
        "<script>addEventListener('submit', (event) => log.push(`submit:${event.isTrusted}`))"
        "</script>",
    )


def write(page: TaskPage, text: str, **params: object) -> dict[str, object]:
    """Type into the field by its XPath."""
    return dict(page("type", xpath="//*[@id='i']", text=text, **params))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("text", TEXTS)
def test_any_text_replaces_the_value_of_the_field(
    reader: Reader, page_server: PageServer, text: str, strategy: str
) -> None:
    page = one_field(reader, page_server, "<input id=i value='old value'>")
    assert write(page, text, strategy=strategy) == {"typed": True, "strategy": strategy}
    assert page.evaluate("i.value") == text


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("text", ["你好 🙂 rich", "two\nlines"])
def test_rich_editors_and_text_areas_accept_text(
    reader: Reader, page_server: PageServer, text: str, strategy: str
) -> None:
    page = start_on_markup(
        reader, page_server, "<div id=i contenteditable=true>old</div><textarea id=t></textarea>"
    )
    write(page, text, strategy=strategy)
    page("type", xpath="//textarea", text=text, strategy=strategy)
    assert page.evaluate("t.value") == text
    assert page.evaluate("i.innerText").split() == text.split()


def test_keys_are_sent_as_keyboard_events(reader: Reader, page_server: PageServer) -> None:
    page = one_field(reader, page_server, "<input id=i>")
    page.evaluate(
        "void (f.onsubmit = () => false, i.onkeydown = (event) => void log.push("
        "[event.key, event.code, event.keyCode, event.shiftKey].join('|')))"
    )
    write(page, "aB1?", submit=True)
    keys = [one for one in page.log if "|" in one]
    assert keys == [
        "a|KeyA|65|false",
        "B|KeyB|66|true",
        "1|Digit1|49|false",
        "?|Slash|191|true",
        "Enter|Enter|13|false",
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_submit_presses_enter(reader: Reader, page_server: PageServer, strategy: str) -> None:
    page = one_field(reader, page_server, "<input id=i name=n>")
    write(page, "中文 a&b", submit=True, strategy=strategy)
    page("wait_for_loaded")
    assert "/done?n=%E4%B8%AD%E6%96%87+a%26b" in page("screenshot")["url"]


def test_without_submit_nothing_is_submitted(reader: Reader, page_server: PageServer) -> None:
    page = one_field(reader, page_server, "<input id=i name=n>")
    write(page, "a")
    assert not [one for one in page.log if one.startswith("submit")]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_empty_text_empties_the_field(
    reader: Reader, page_server: PageServer, strategy: str
) -> None:
    page = one_field(reader, page_server, "<input id=i value=old>")
    write(page, "", strategy=strategy)
    assert page.evaluate("i.value") == ""


@pytest.mark.slow
def test_an_option_a_checkbox_and_a_date_are_set_by_text(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<select id=s><option>One<option>Two</select><input id=d type=date>"
        "<label><input id=c type=checkbox> Yes</label>",
    )
    assert page("type", xpath="//select", text="Two")["strategy"] == "dom_input"
    assert page("type", xpath="//*[@id='d']", text="2026-02-03")["strategy"] == "dom_input"
    assert page("type", xpath="//*[@id='c']", text="true")["strategy"] == "cdp_key"
    assert page.evaluate("[s.value, d.value, c.checked]") == ["Two", "2026-02-03", True]


@pytest.mark.slow
def test_a_field_in_a_frame_and_in_closed_shadow_roots_accepts_text(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<iframe srcdoc=\"<input id=f placeholder='In a frame'>\"></iframe><x-a></x-a><script>"
        "root = document.querySelector('x-a').attachShadow({mode: 'closed'});"
        "root.innerHTML = '<input placeholder=Closed>'</script>",
    )
    ids = page.index()
    page("type", clickId=ids["In a frame"], text="你好")
    page("type", clickId=ids["Closed"], text="there 🙂")
    inside = "[document.querySelector('iframe').contentDocument.querySelector('input').value,"
    assert page.evaluate(f"{inside} root.querySelector('input').value]") == ["你好", "there 🙂"]


@pytest.mark.slow
def test_without_an_element_the_focused_field_accepts_the_text(
    reader: Reader, page_server: PageServer
) -> None:
    page = one_field(reader, page_server, "<input id=o><input id=i>")
    error = page.error("type", text="x")
    assert error["errorCode"] == "ELEMENT_NOT_FOUND"
    page("click", xpath="//*[@id='i']")
    page("type", text="here")
    assert page.evaluate("[o.value, i.value]") == ["", "here"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("<input id=i disabled>", "ELEMENT_NOT_FOUND"),
        ("<input id=i readonly>", "ELEMENT_NOT_FOUND"),
        ("<p id=i>text</p>", "ELEMENT_NOT_FOUND"),
        ("<input id=i type=file>", "ELEMENT_NOT_FOUND"),
        ("<input id=i type=number>", "INVALID_PARAMETER"),
        ("<select id=i><option>One</select>", "ELEMENT_NOT_FOUND"),
    ],
)
def test_an_element_that_accepts_no_text_fails(
    reader: Reader, page_server: PageServer, field: str, code: str
) -> None:
    page = one_field(reader, page_server, field)
    assert page.error("type", xpath="//*[@id='i']", text="words")["errorCode"] == code


def test_a_page_that_changes_the_typed_text_causes_a_warning(
    reader: Reader, page_server: PageServer
) -> None:
    page = one_field(reader, page_server, "<input id=i aria-label=Code maxlength=3>")
    assert write(page, "12345")["warnings"] == ["The field “Code” changed the value to: 123"]


@pytest.mark.slow
def test_a_secret_is_in_no_warning(reader: Reader, page_server: PageServer) -> None:
    page = one_field(reader, page_server, "<input id=i aria-label=Password maxlength=9>")
    output = write(page, "hunter2secret")
    assert output["warnings"] == ["The field “Password” changed the value to: ***"]
    page("screenshot")
    page("get_html")
    assert b"hunter2" not in page.saved()[2]


def test_a_page_that_navigates_on_the_typed_text_was_typed_in(
    reader: Reader, page_server: PageServer
) -> None:
    page = one_field(reader, page_server, "<input id=i name=code maxlength=4>")
    page.evaluate("void (i.oninput = () => i.value.length === 4 && f.submit())")
    output = write(page, "1234", submit=True)
    assert output["typed"] is True
    page("wait_for_loaded")
    assert page("screenshot")["url"].endswith("/done?code=1234")


@pytest.mark.slow
def test_enter_leaves_the_text_of_a_text_area_unchanged(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, "<textarea id=t>old</textarea><div id=d contenteditable>old</div>"
    )
    page("type", xpath="//textarea", text="new", submit=True)
    page("type", xpath="//div", text="new", submit=True)
    assert page.evaluate("t.value") == "new\n"
    assert page.evaluate("d.innerText").strip() == "new"


CLOCK = "<p id=clock>12:00:00</p><script>let n = 0;" + (
    "setInterval(() => { clock.textContent = `12:00:${String(n += 1).padStart(2, '0')}` }, 300)"
    "</script>"
)


@pytest.mark.slow
def test_an_enter_that_starts_nothing_is_reported(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        f"{CLOCK}<input><button onclick=\"out.append('Found')\">Search</button><p id=out>",
    )
    output = page("type", xpath="//input", text="lamp", submit=True)
    assert output["warnings"] == [NO_EFFECT]


def test_an_enter_that_shows_or_sends_something_is_not_warned_of(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<input onkeydown=\"if (event.key === 'Enter') out.append('Found')\"><p id=out></p>"
        "<form action=/plain><textarea></textarea><input id=q></form>",
    )
    assert "warnings" not in page("type", xpath="//input", text="lamp", submit=True)
    assert "warnings" not in page("type", xpath="//form/input", text="lamp", submit=True)
