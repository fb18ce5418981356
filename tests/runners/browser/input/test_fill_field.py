"""Filling fields of every kind, by real typing where a keyboard can do it."""

from __future__ import annotations

import pytest

from tests.support.browser.page_actions import click, evaluate, fill, open_markup, tool_error
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.template_sites import by_selector, by_text


def test_typed_text_replaces_the_previous_value(reader: Reader, page_server: PageServer) -> None:
    open_markup(reader, page_server, "<input id=a value=before><input id=b>")
    fill(reader, by_selector("#a"), "after 后")
    assert evaluate(reader, "a.value") == "after 后"
    log = evaluate(reader, "log")
    assert "keydown:a:true" in log
    assert "input:a:true" in log
    fill(reader, by_selector("#a"), "")
    assert evaluate(reader, "a.value") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("markup", "value", "expected"),
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
def test_each_kind_of_field_accepts_its_value(
    reader: Reader, page_server: PageServer, *, markup: str, value: str, expected: str
) -> None:
    open_markup(reader, page_server, markup)
    fill(reader, by_selector("#f"), value)
    assert evaluate(reader, "document.querySelector('#f').value") == expected
    assert any(entry.startswith(("input:f", "change:f")) for entry in evaluate(reader, "log"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "value", "after"),
    [("", "true", True), ("checked", "true", True), ("checked", "否", False), ("", "no", False)],
)
def test_a_checkbox_is_clicked_only_when_its_state_must_change(
    reader: Reader, page_server: PageServer, *, before: str, value: str, after: bool
) -> None:
    open_markup(reader, page_server, f"<label><input id=c type=checkbox {before}> Agree</label>")
    fill(reader, by_text("agree"), value)
    assert evaluate(reader, "c.checked") is after
    was_clicked = "click:c:true" in evaluate(reader, "log")
    assert was_clicked is (after != bool(before))


@pytest.mark.slow
def test_a_checkbox_behind_its_label_is_clicked_by_its_label(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(
        reader, page_server, "<input id=c type=checkbox style=display:none><label for=c>Yes</label>"
    )
    fill(reader, by_text("yes"), "true")
    assert evaluate(reader, "c.checked") is True


@pytest.mark.slow
def test_a_radio_is_selected_by_itself_or_by_the_option_of_its_group(
    reader: Reader, page_server: PageServer
) -> None:
    radios = "".join(
        f"<label><input id={name} type=radio name=g value={name}> {name} one</label>"
        for name in ("red", "blue")
    )
    open_markup(reader, page_server, radios)
    fill(reader, by_text("red one"), "true")
    assert evaluate(reader, "[red.checked, blue.checked]") == [True, False]
    fill(reader, by_selector("#red"), "blue")
    assert evaluate(reader, "[red.checked, blue.checked]") == [False, True]


@pytest.mark.slow
def test_a_switch_made_of_a_div_is_clicked(reader: Reader, page_server: PageServer) -> None:
    open_markup(
        reader,
        page_server,
        "<div id=s role=switch aria-checked=false tabindex=0>Dark mode</div><script>"
        "s.onclick = () => s.setAttribute('aria-checked', s.ariaChecked !== 'true')</script>",
    )
    fill(reader, by_text("dark mode"), "true")
    assert evaluate(reader, "s.ariaChecked") == "true"


@pytest.mark.slow
def test_a_rich_editor_accepts_text(reader: Reader, page_server: PageServer) -> None:
    open_markup(
        reader, page_server, "<div id=e contenteditable=true aria-label=Note><b>old</b></div>"
    )
    fill(reader, by_text("note"), "new 文字")
    assert evaluate(reader, "e.innerText.trim()") == "new 文字"


@pytest.mark.slow
def test_fields_in_shadow_roots_and_frames_accept_typed_text(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(
        reader,
        page_server,
        "<my-box></my-box><iframe id=i style='margin:300px' srcdoc='<label>Inner <input id=f>"
        '</label><button id=b onclick="this.textContent=1">Do it</button>\'></iframe><script>'
        "document.querySelector('my-box').attachShadow({mode: 'open'}).innerHTML ="
        " '<label>Nick <input id=n></label>'</script>",
    )
    fill(reader, by_text("nick"), "ada")
    fill(reader, by_text("inner"), "eve")
    click(reader, by_text("do it"))
    assert evaluate(reader, "document.querySelector('my-box').shadowRoot.querySelector('#n').value")
    assert evaluate(reader, "i.contentDocument.querySelector('#f').value") == "eve"
    assert evaluate(reader, "i.contentDocument.querySelector('#b').textContent") == "1"


@pytest.mark.slow
def test_a_value_that_the_page_changes_causes_a_warning(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, "<input id=a maxlength=3 aria-label=Code>")
    assert fill(reader, by_selector("#a"), "12345")["warnings"] == [
        "The field “Code” changed the value to: 123"
    ]


def test_secret_values_are_masked_in_the_output(reader: Reader, page_server: PageServer) -> None:
    open_markup(
        reader, page_server, "<input id=p type=password maxlength=4><input id=t aria-label=Name>"
    )
    output = fill(reader, by_selector("#p"), "hunter22")
    assert output["value"] == "***"
    assert "hunt" not in str(output)
    reader.secrets["fields.0.value"] = "canary-7"
    result = reader.call("fill_field", locator=by_selector("#t"), secret="fields.0.value")
    assert result.output is not None, result.error
    assert result.output["value"] == "***"
    assert evaluate(reader, "t.value") == "canary-7"
    missing = tool_error(reader, "fill_field", locator=by_selector("#t"), secret="other")
    assert missing["errorCode"] == "INVALID_PARAMETER"


@pytest.mark.slow
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
def test_a_value_that_a_field_does_not_accept_is_rejected(
    reader: Reader, page_server: PageServer, *, markup: str, value: str, code: str
) -> None:
    open_markup(reader, page_server, markup)
    assert (
        tool_error(reader, "fill_field", locator=by_selector("#f"), value=value)["errorCode"]
        == code
    )
