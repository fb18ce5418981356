"""The report that the demo prints: readable on a terminal and in a pipe, for any page title."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from runs.operations.demo.follow import ReadingProgress, display_on
from runs.operations.demo.report import show_addresses, show_failure, show_notes, show_pages

SITE = "http://127.0.0.1:4000"


@pytest.fixture
def piped_console() -> Console:
    return Console(file=io.StringIO())


def printed_lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def read_page(path: str = "/audit.html", title: str = "Audit", **fields: Any) -> dict[str, Any]:
    return {
        "url": SITE + path,
        "title": title,
        "pageType": "article",
        "elementCount": 12,
        "contentSections": 4,
        "pageInfo": {"page": {"url": SITE + path}},
        "success": True,
        "error": None,
        **fields,
    }


def failed_page(path: str = "/audit.html", code: str = "NAVIGATION_TIMEOUT") -> dict[str, Any]:
    return {"url": SITE + path, "success": False, "error": {"errorCode": code, "message": "late"}}


def test_a_failed_page_shows_its_code_in_place_of_its_title(piped_console: Console) -> None:
    show_pages(piped_console, [failed_page()], {0: 30_012})
    assert printed_lines(piped_console)[-1].split() == [
        "/audit.html",
        "NAVIGATION_TIMEOUT",
        "30012",
    ]


def test_a_failed_page_without_an_error_is_still_displayed(piped_console: Console) -> None:
    show_pages(piped_console, [{"url": SITE + "/x", "success": False, "error": None}], {})
    assert printed_lines(piped_console)[-1].split() == ["/x", "not", "read"]


def test_rows_are_at_most_a_hundred_columns_wide_in_a_pipe(piped_console: Console) -> None:
    long = read_page(
        "/life-of-a-run.html", "A title that goes on and on and on " * 9, pageType="search"
    )
    show_pages(
        piped_console, [long, failed_page(code="TEMPLATE_VERSION_UNSUPPORTED")], {0: 123_456}
    )
    lines = printed_lines(piped_console)
    assert max(cell_len(line) for line in lines) <= 100
    assert "TEMPLATE_VERSION_UNSUPPORTED" in lines[-1]
    assert len(lines) == 4


def test_wide_characters_do_not_shift_the_columns(piped_console: Console) -> None:
    pages = [read_page(), read_page(title="中文标题" * 20), read_page(title="中")]
    show_pages(piped_console, pages, {0: 1, 1: 2, 2: 3})
    columns = {cell_len(line.partition("article")[0]) for line in printed_lines(piped_console)[2:5]}
    assert len(columns) == 1


def test_a_title_cannot_write_markup_or_control_the_terminal(piped_console: Console) -> None:
    show_pages(piped_console, [read_page(title="[red]\x1b]0;owned\x07\x1b[2J\r\nred[/red]")], {})
    text = "\n".join(printed_lines(piped_console))
    assert "[red]" in text
    assert not set(text) & {"\x1b", "\x07", "\r"}


def test_characters_that_an_ascii_terminal_lacks_are_replaced() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"))
    show_pages(console, [read_page(title="Continuity 是什么")], {0: 5})
    show_notes(console, [], ["页面没有找到"])
    assert b"Continuity ???" in raw.getvalue()


def test_sections_may_be_a_list_or_a_number(piped_console: Console) -> None:
    show_pages(
        piped_console, [read_page(contentSections=[{}, {}, {}]), read_page(contentSections=0)], {}
    )
    assert [line.split()[-1] for line in printed_lines(piped_console)[2:4]] == ["3", "0"]


def test_notes_mention_redirects_and_warnings(piped_console: Console) -> None:
    moved = read_page("/start", pageInfo={"page": {"url": SITE + "/quick-start.html"}})
    show_notes(piped_console, [moved, read_page(), failed_page()], ["/missing answered 404."])
    assert printed_lines(piped_console) == [
        "",
        "  Note: /start redirected to /quick-start.html, which was read.",
        "  Note: /missing answered 404.",
    ]


def test_addresses_are_never_wrapped(piped_console: Console) -> None:
    base_url = "http://127.0.0.1:8000/" + "prefix" * 20
    run = {"runId": "run_1", "status": "succeeded", "artifactIds": ["art_1"], "resultSummary": "ok"}
    show_addresses(piped_console, run, base_url=base_url, login_path="/admin/once/T/")
    text = "\n".join(printed_lines(piped_console))
    assert f"{base_url}/api/v1/artifacts/art_1/content\n" in text
    assert f"{base_url}/admin/once/T/" in text
    assert "manage.py mcp_config" in text


def test_without_a_login_link_the_report_mentions_createsuperuser(piped_console: Console) -> None:
    run = {"runId": "run_1", "status": "succeeded", "artifactIds": []}
    show_addresses(piped_console, run, base_url="http://127.0.0.1:8000", login_path=None)
    text = "\n".join(printed_lines(piped_console))
    assert "createsuperuser" in text
    assert "None" not in text


def test_a_failure_is_a_sentence_and_its_recovery(piped_console: Console) -> None:
    show_failure(piped_console, "the [bold]worker[/bold] is gone.", "start it.")
    assert printed_lines(piped_console) == [
        "  Failed: the [bold]worker[/bold] is gone.",
        "  What to do: start it.",
    ]


def event(type_: str, step: int, **data: Any) -> dict[str, Any]:
    return {"seq": 1, "type": type_, "at": 0, "data": {"step": step, **data}}


def test_in_a_pipe_every_page_is_one_plain_line(piped_console: Console) -> None:
    reading = ReadingProgress([SITE + "/", SITE + "/audit.html"])
    with display_on(piped_console, 2) as display:
        reading.handle(event("step.started", 0), display)
        reading.handle(event("step.retrying", 1, errorCode="PAGE_CRASHED"), display)
        reading.handle(event("step.succeeded", 1, durationMs=412.6), display)
        reading.handle(event("step.failed", 0, errorCode="NAVIGATION_TIMEOUT"), display)
    assert [line.split() for line in printed_lines(piped_console)] == [
        ["/audit.html", "is", "retried", "(PAGE_CRASHED)."],
        ["1/2", "/audit.html", "413", "ms"],
        ["2/2", "/", "NAVIGATION_TIMEOUT"],
    ]
    assert reading.milliseconds == {1: 413}


def test_events_that_belong_to_no_page_are_ignored(piped_console: Console) -> None:
    reading = ReadingProgress([SITE + "/"])
    with display_on(piped_console, 1) as display:
        reading.handle({"seq": 1, "type": "run.queued", "at": 0, "data": {}}, display)
        reading.handle(event("step.succeeded", 7, durationMs=1), display)
        reading.handle({"seq": 2, "type": "run.started", "at": 0, "data": {"attempt": 1}}, display)
    assert printed_lines(piped_console) == []


def test_a_worker_that_takes_over_is_mentioned(piped_console: Console) -> None:
    with display_on(piped_console, 1) as display:
        resumed = {"seq": 5, "type": "run.resumed", "at": 0, "data": {"attempt": 2}}
        ReadingProgress([SITE]).handle(resumed, display)
    assert printed_lines(piped_console) == [
        "         Another worker continues where the last one stopped."
    ]


def test_the_progress_bar_is_cleared_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with display_on(console, 2) as display:
        display.start()
        display.page("/audit.html", "412 ms")
        display.note("something odd")
    text = "".join(printed_lines(console))
    assert "1/2" in text
    assert "something odd" in text
    assert text.endswith("\x1b[2K")
