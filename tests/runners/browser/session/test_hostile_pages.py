"""Pages that are hostile or harmful to their reader."""

from __future__ import annotations

import json

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/alert-loop", "too_many_dialogs"),
        ("/late-alert-loop", "too_many_dialogs"),
        ("/popups", "too_many_popups"),
    ],
)
def test_a_page_that_floods_the_reader_fails_and_the_next_page_works(
    reader: Reader, page_server: PageServer, path: str, reason: str
) -> None:
    reader(page_server.url("/plain"))
    failure = reader.failure(page_server.url(path))
    assert (failure.code, failure.details["reason"]) == ("STEP_EXECUTION_FAILED", reason)
    assert not failure.retryable
    assert reader(page_server.url("/other"))["title"] == "Other"


def test_a_few_dialogs_are_dismissed(reader: Reader, page_server: PageServer) -> None:
    assert "false," in reader.text(page_server.url("/few-dialogs"))


def test_dialogs_are_counted_per_page(reader: Reader, page_server: PageServer) -> None:
    url = page_server.add(
        "/dozen", "<title>D</title><p>x<script>for (i = 0; i < 12; i++) alert(i)</script>"
    )
    assert [reader(url)["title"] for _ in range(3)] == ["D", "D", "D"]


@pytest.mark.slow
def test_a_page_with_a_beforeunload_dialog_is_left(reader: Reader, page_server: PageServer) -> None:
    script = "<script>onbeforeunload = (event) => event.preventDefault()</script>"
    body = f"<title>Stay</title><button>b</button>{script}"

    async def read_click_and_read() -> str:
        async with reader.session.tab() as tab:
            await tab.page.goto(page_server.add("/stay", body))
            await tab.page.click("button")
        return str((await reader.reading(page_server.url("/plain")))["title"])

    assert reader.wait(read_click_and_read()) == "Plain"


def test_a_popup_is_closed_and_the_page_is_read(reader: Reader, page_server: PageServer) -> None:
    assert "opener" in reader.text(page_server.url("/one-popup"))

    async def wait_for_its_end() -> None:
        async with reader.session.tab() as tab:
            await tab.page.wait_for_function("popup.closed", timeout=5000)

    reader.wait(wait_for_its_end())


def test_replaced_built_ins_and_shadowed_properties_do_not_stop_the_reader(
    reader: Reader, page_server: PageServer
) -> None:
    page = reader(page_server.url("/broken-builtins"))
    assert page["title"] == "Hostile"
    assert page["content"]["sections"] == [{"heading": "Still read", "level": 1, "text": "Text."}]
    assert [element["label"] for element in page["pageInfo"]["elements"]] == [
        "childNodes",
        "getAttribute",
        "nodeType",
    ]
    assert "hijacked" not in json.dumps(page)


def test_a_page_cannot_change_the_javascript_world_of_the_reader(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<title>T</title><p>Real text of the page.</p><script>
      Object.defineProperty(document, 'title', {get: () => 'forged'});
      document.querySelectorAll = () => []; window.getComputedStyle = () => ({display: 'none'});
      Element.prototype.checkVisibility = () => false; document.createTreeWalker = null;
      window.performance = null; window.MutationObserver = null;</script>"""
    page = reader(page_server.add("/forged", body))
    assert page["title"] == "T"
    assert page["content"]["sections"][0]["text"] == "Real text of the page."


def test_a_page_nested_deeper_than_any_parser_allows_is_read(
    reader: Reader, page_server: PageServer
) -> None:
    body = """<title>Deep</title><p>top</p><div id=d></div><script>let at = d;
      for (let n = 0; n < 1000; n++) at = at.appendChild(document.createElement('div'));
      at.append('bottom')</script>"""
    assert "top" in reader.text(page_server.add("/deep", body))


@pytest.mark.slow
def test_a_frame_that_floods_or_hangs_does_not_stop_the_page(
    reader: Reader, page_server: PageServer
) -> None:
    url = page_server.add(
        "/framed", "<title>Outer</title><p>outer<iframe src=/alert-loop></iframe>"
    )
    assert reader.failure(url).details["reason"] == "too_many_dialogs"
    assert reader(page_server.url("/plain"))["title"] == "Plain"
