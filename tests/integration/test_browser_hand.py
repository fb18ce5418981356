"""What a hand does on a page: real typing and pressing, whatever the page does meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.browsing import Reader
from tests.support.pages import PageServer, html
from tests.support.template_sites import HEAD, css, words

pytest_plugins = ["tests.support.browser_fixtures"]
LOG = """<script>
const log = [];
for (const kind of ["pointerdown", "click", "input", "change", "keydown", "keyup", "focusin"])
  document.addEventListener(kind, (event) => log.push(
    `${kind}:${event.composedPath()[0].id ?? ""}:${event.isTrusted}`), true);
</script>"""


def show(read: Reader, server: PageServer, markup: str) -> None:
    url = server.add("/hand", f"{HEAD}<title>Hand</title>{LOG}{markup}")
    assert read.call("open_page", url=url).ok


def evaluate(read: Reader, expression: str) -> Any:
    async def ask() -> Any:
        async with read.session.kept_tab() as tab:
            return await tab.page.evaluate(expression)

    return read.wait(ask())


def fill(read: Reader, locator: dict[str, str], value: str) -> Mapping[str, Any]:
    result = read.call("fill_field", locator=locator, value=value)
    assert result.output is not None, result.error
    return result.output


def failed(read: Reader, tool: str, **args: Any) -> dict[str, Any]:
    result = read.call(tool, **{"timeoutMs": 300, **args})
    assert result.error is not None, result.output
    return dict(result.error)


def press(read: Reader, locator: dict[str, str], **args: Any) -> Mapping[str, Any]:
    result = read.call("click_element", locator=locator, **args)
    assert result.output is not None, result.error
    return result.output


def test_text_is_typed_in_place_of_what_was_there(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<input id=a value=before><input id=b>")
    fill(read, css("#a"), "after 后")
    assert evaluate(read, "a.value") == "after 后"
    seen = evaluate(read, "log")
    assert "keydown:a:true" in seen
    assert "input:a:true" in seen
    fill(read, css("#a"), "")
    assert evaluate(read, "a.value") == ""


@pytest.mark.parametrize(
    ("markup", "value", "shown"),
    [
        ("<textarea id=f>old</textarea>", "one\ntwo", "one\ntwo"),
        ("<input id=f>", "x" * 500, "x" * 500),
        ("<input id=f type=number value=3>", "42", "42"),
        ("<input id=f type=password>", "s3cret-ß", "s3cret-ß"),
        ("<input id=f type=date>", "2026-02-28", "2026-02-28"),
        ("<input id=f type=time>", "13:45", "13:45"),
        ("<input id=f type=datetime-local>", "2026-02-28T13:45", "2026-02-28T13:45"),
        ("<input id=f type=month>", "2026-02", "2026-02"),
        ("<input id=f type=color>", "#ff0080", "#ff0080"),
        ("<input id=f type=range min=0 max=10>", "7", "7"),
        ("<select id=f><option value=1>One<option value=2>Two</select>", "Two", "2"),
        ("<select id=f><option value=1>One<option value=2>Two</select>", "2", "2"),
        ("<select id=f><option value=b>北京<option value=s>上海市</select>", "上海", "s"),
        ("<input id=f type=email>", "名@例子.公司", "名@例子.公司"),
    ],
)
def test_each_kind_of_field_takes_its_value(
    read: Reader, page_server: PageServer, *, markup: str, value: str, shown: str
) -> None:
    show(read, page_server, markup)
    fill(read, css("#f"), value)
    assert evaluate(read, "document.querySelector('#f').value") == shown
    assert any(entry.startswith(("input:f", "change:f")) for entry in evaluate(read, "log"))


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [("", "true", True), ("checked", "true", True), ("checked", "否", False), ("", "no", False)],
)
def test_a_box_is_pressed_only_when_it_must(
    read: Reader, page_server: PageServer, *, before: str, value: str, after: bool
) -> None:
    show(read, page_server, f"<label><input id=c type=checkbox {before}> Agree</label>")
    fill(read, words("agree"), value)
    assert evaluate(read, "c.checked") is after
    pressed = "click:c:true" in evaluate(read, "log")
    assert pressed is (after != bool(before))


def test_a_box_behind_its_label_is_pressed_by_its_label(
    read: Reader, page_server: PageServer
) -> None:
    show(read, page_server, "<input id=c type=checkbox style=display:none><label for=c>Yes</label>")
    fill(read, words("yes"), "true")
    assert evaluate(read, "c.checked") is True


def test_a_radio_is_chosen_by_itself_or_by_its_groups_option(
    read: Reader, page_server: PageServer
) -> None:
    radios = "".join(
        f"<label><input id={name} type=radio name=g value={name}> {name} one</label>"
        for name in ("red", "blue")
    )
    show(read, page_server, radios)
    fill(read, words("red one"), "true")
    assert evaluate(read, "[red.checked, blue.checked]") == [True, False]
    fill(read, css("#red"), "blue")
    assert evaluate(read, "[red.checked, blue.checked]") == [False, True]


def test_a_switch_made_of_a_div_is_pressed(read: Reader, page_server: PageServer) -> None:
    show(
        read,
        page_server,
        "<div id=s role=switch aria-checked=false tabindex=0>Dark mode</div><script>"
        "s.onclick = () => s.setAttribute('aria-checked', s.ariaChecked !== 'true')</script>",
    )
    fill(read, words("dark mode"), "true")
    assert evaluate(read, "s.ariaChecked") == "true"


def test_a_rich_editor_is_written_into(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<div id=e contenteditable=true aria-label=Note><b>old</b></div>")
    fill(read, words("note"), "new 文字")
    assert evaluate(read, "e.innerText.trim()") == "new 文字"


def test_fields_in_shadow_roots_and_frames_are_typed_into(
    read: Reader, page_server: PageServer
) -> None:
    show(
        read,
        page_server,
        "<my-box></my-box><iframe id=i style='margin:300px' srcdoc='<label>Inner <input id=f>"
        '</label><button id=b onclick="this.textContent=1">Do it</button>\'></iframe><script>'
        "document.querySelector('my-box').attachShadow({mode: 'open'}).innerHTML ="
        " '<label>Nick <input id=n></label>'</script>",
    )
    fill(read, words("nick"), "ada")
    fill(read, words("inner"), "eve")
    press(read, words("do it"))
    assert evaluate(read, "document.querySelector('my-box').shadowRoot.querySelector('#n').value")
    assert evaluate(read, "i.contentDocument.querySelector('#f').value") == "eve"
    assert evaluate(read, "i.contentDocument.querySelector('#b').textContent") == "1"


def test_what_a_page_makes_of_a_value_is_warned_of(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<input id=a maxlength=3 aria-label=Code>")
    assert fill(read, css("#a"), "12345")["warnings"] == [
        "The field “Code” made something else of the value: 123"
    ]


def test_secret_values_are_masked_in_what_is_told(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<input id=p type=password maxlength=4><input id=t aria-label=Name>")
    told = fill(read, css("#p"), "hunter22")
    assert told["value"] == "***"
    assert "hunt" not in str(told)
    read.secrets["fields.0.value"] = "canary-7"
    result = read.call("fill_field", locator=css("#t"), secret="fields.0.value")
    assert result.output is not None, result.error
    assert result.output["value"] == "***"
    assert evaluate(read, "t.value") == "canary-7"
    missing = failed(read, "fill_field", locator=css("#t"), secret="other")
    assert missing["errorCode"] == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    ("markup", "value", "code"),
    [
        ("<input id=f type=date>", "28.2.2026", "INVALID_PARAMETER"),
        ("<input id=f type=number>", "many", "INVALID_PARAMETER"),
        ("<input id=f type=checkbox>", "perhaps", "ELEMENT_NOT_FOUND"),
        ("<select id=f><option>One</select>", "Three", "ELEMENT_NOT_FOUND"),
        ("<select id=f><option disabled>One</select>", "One", "ELEMENT_NOT_FOUND"),
        ("<input id=f type=file>", "/etc/passwd", "ELEMENT_NOT_FOUND"),
        ("<input id=f readonly>", "x", "ELEMENT_NOT_FOUND"),
        ("<div id=f>no field</div>", "x", "ELEMENT_NOT_FOUND"),
    ],
)
def test_a_value_that_a_field_does_not_take_is_refused(
    read: Reader, page_server: PageServer, *, markup: str, value: str, code: str
) -> None:
    show(read, page_server, markup)
    assert failed(read, "fill_field", locator=css("#f"), value=value)["errorCode"] == code


def test_a_press_reaches_what_is_far_down_the_page(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<p style='height:5000px'>long</p><button id=b>Far</button>")
    press(read, words("far"))
    assert evaluate(read, "log").count("click:b:true") == 1


def test_what_something_lies_over_is_not_pressed(read: Reader, page_server: PageServer) -> None:
    show(
        read,
        page_server,
        "<button id=b>Buy</button><div style='position:fixed;inset:0'>Accept our cookies</div>",
    )
    error = failed(read, "click_element", locator=words("buy"))
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "covered")
    assert "Accept our cookies" in error["details"]["coveredBy"]
    assert error["details"]["effect"] == "none"
    assert not [entry for entry in evaluate(read, "log") if entry.startswith("click")]


def test_an_overlay_that_goes_away_is_waited_for(read: Reader, page_server: PageServer) -> None:
    show(
        read,
        page_server,
        "<button id=b>Buy</button><div id=o style='position:fixed;inset:0'></div>"
        "<script>setTimeout(() => o.remove(), 900)</script>",
    )
    press(read, words("buy"))
    assert "click:b:true" in evaluate(read, "log")


def test_an_element_that_comes_late_or_moves_is_waited_for(
    read: Reader, page_server: PageServer
) -> None:
    show(
        read,
        page_server,
        "<style>@keyframes m {to {margin-left: 400px}} #b {animation: m .8s linear forwards}"
        "</style><script>setTimeout(() => document.body.insertAdjacentHTML('beforeend',"
        " '<button id=b>Late</button>'), 800)</script>",
    )
    press(read, words("late"))
    assert evaluate(read, "log").count("click:b:true") == 1


def test_a_button_that_is_enabled_late_is_waited_for(read: Reader, page_server: PageServer) -> None:
    show(
        read,
        page_server,
        "<button id=b disabled>Go</button><script>setTimeout(() => b.disabled = false, 800)"
        "</script>",
    )
    press(read, words("go"))
    assert evaluate(read, "log").count("click:b:true") == 1


def test_a_press_that_would_miss_touches_nothing_else(
    read: Reader, page_server: PageServer
) -> None:
    show(
        read,
        page_server,
        "<button id=b>Keep</button><button id=d>Delete all</button><script>"
        "addEventListener('pointermove', () => {"
        " if (!d.dataset.moved) { d.dataset.moved = 1; b.before(d);"
        " d.style.cssText = b.style.cssText; } }, true)</script>",
    )
    press(read, words("keep"))
    seen = evaluate(read, "log")
    assert "click:d:true" not in seen
    assert seen.count("click:b:true") == 1


def test_a_link_for_a_tab_of_its_own_opens_in_this_one(
    read: Reader, page_server: PageServer
) -> None:
    show(read, page_server, f"<a target=_blank href='{page_server.url('/plain')}'>Open</a>")
    press(read, words("open"))
    page = read.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Plain"


def test_a_form_without_a_button_is_sent_by_enter(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<form action=/plain><input id=q name=q></form>")
    fill(read, css("#q"), "x")
    result = read.call("submit_form")
    assert result.output is not None, result.error
    assert result.output["match"]["matched"] == "enter"
    page = read.call("read_current_page").output
    assert page is not None
    assert page["url"].endswith("/plain?q=x")


def test_of_several_forms_the_one_that_was_filled_is_sent(
    read: Reader, page_server: PageServer
) -> None:
    show(
        read,
        page_server,
        "<form action=/other><button>Subscribe</button></form>"
        "<form action=/plain><input id=q name=q><button>Go</button></form>",
    )
    fill(read, css("#q"), "1")
    assert read.call("submit_form").ok
    page = read.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Plain"


def test_a_page_without_a_form_has_nothing_to_send(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<p>Nothing here")
    error = failed(read, "submit_form")
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "no_form")


def test_a_question_of_the_page_is_answered_with_no_and_told(
    read: Reader, page_server: PageServer
) -> None:
    show(read, page_server, "<button onclick=\"window.said = confirm('Really?')\">Ask</button>")
    assert press(read, words("ask"))["warnings"] == [
        "The page asked “Really?”, which was answered with no."
    ]
    assert evaluate(read, "said") is False


def test_a_press_after_which_the_page_hangs_may_have_had_its_effect(
    read: Reader, page_server: PageServer
) -> None:
    show(read, page_server, '<button onclick="for(;;){}">Hang</button>')
    result = read.call("click_element", locator=words("hang"), seconds=5.0)
    assert result.error is not None
    assert result.error["errorCode"] in ("NAVIGATION_TIMEOUT", "STEP_EXECUTION_FAILED")
    assert result.error["details"].get("effect") == "unknown"


def test_a_wait_that_is_not_met_is_an_answer(read: Reader, page_server: PageServer) -> None:
    show(read, page_server, "<p id=p>Here</p>")
    never = {"type": "selector", "value": "#never", "timeoutMs": 200}
    output = read.call("wait_for", condition=never).output
    assert output is not None
    assert output["met"] is False
    output = read.call("wait_for", condition={**never, "value": "#p"}).output
    assert output is not None
    assert output["met"] is True


def test_a_next_page_that_is_slow_is_waited_for(read: Reader, page_server: PageServer) -> None:
    slow = page_server.add("/later", html("<title>Later</title>", delay=4.5))
    show(read, page_server, f"<a href='{slow}'>On</a>")
    press(read, words("on"))
    page = read.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Later"


def test_a_page_that_a_script_sends_on_after_a_while_is_followed(
    read: Reader, page_server: PageServer
) -> None:
    slow = page_server.add("/later", html("<title>Later</title>", delay=4.0))
    show(
        read,
        page_server,
        f"<button onclick=\"fetch('/api/slow.json').then(() => location = '{slow}')\">On</button>",
    )
    press(read, words("on"))
    page = read.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Later"


def test_the_page_of_a_session_is_no_page_of_its_next_run(
    read: Reader, page_server: PageServer
) -> None:
    show(read, page_server, "<input id=a>")
    assert read.session.has_page
    read.session.run_id = "run_next"
    assert not read.session.has_page
    assert failed(read, "fill_field", locator=css("#a"), value="x")["errorCode"] == "PAGE_CRASHED"
    show(read, page_server, "<input id=a>")
    fill(read, css("#a"), "x")
