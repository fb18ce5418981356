"""Events of a page are reported: dialogs, pages that cannot be opened."""

from __future__ import annotations

import pytest

from runners.actions.page_preparation import prepare_page
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolResult
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup, start_on_url


def prepared(page: TaskPage) -> dict[str, object]:
    """Prepare a page as the agent's loop does."""

    async def act(name: str, args: object) -> ToolResult:
        return await invoke(ToolCall(name, dict(args)), page.read.context())  # type: ignore[call-overload]

    return dict(page.read.wait(prepare_page(act, page.tab_id)).output or {})


def warnings_of_click(page: TaskPage, text: str) -> list[str]:
    """Click an element, and return the warnings of the click or, if it has none, of a later
    index."""
    warnings = list(page.click(text).get("warnings", ()))
    for _ in range(200):
        if warnings:
            break
        page.evaluate("new Promise((done) => setTimeout(done, 50))")
        warnings += page("wait_for_loaded").get("warnings", ())
    return warnings


@pytest.mark.slow
@pytest.mark.parametrize("href", ["/nothing", "mailto:a@example.org", "tel:123", "foo:bar"])
def test_a_link_that_returns_no_document_leaves_the_page_unchanged(
    reader: Reader, page_server: PageServer, href: str
) -> None:
    page_server.add("/nothing", PageResponse(status=204))
    page = start_on_markup(reader, page_server, f"<a href='{href}'>Go</a><p>Still here.")
    page.click("Go")
    page("wait_for_loaded")
    output = page("readability_extract")
    assert "Still here." in output["markdown"]
    assert "warnings" not in output


@pytest.mark.slow
def test_a_dialog_that_a_page_opens_after_a_click_is_reported_with_the_next_index(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button onclick=\"setTimeout(() => { confirm('Delete all?'); done = true; }, 150)\">B"
        "</button><script>let done = false</script>",
    )
    assert "warnings" not in page.click("B")
    page.evaluate("new Promise((go) => setInterval(() => done && go(), 10))")
    expected = "The page asked “Delete all?” in a dialog, which was dismissed."
    assert prepared(page)["warnings"] == [expected]
    assert prepared(page)["warnings"] == []


@pytest.mark.slow
def test_a_page_that_cannot_be_opened_is_reported(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<a href='http://127.0.0.1:1/'>Go</a>")
    page.click("Go")
    assert "could not be opened" in str(prepared(page)["warnings"])


@pytest.mark.slow
def test_a_page_with_a_beforeunload_dialog_is_left(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<a href=/plain>Go</a><script>onbeforeunload = (event) => event.preventDefault()</script>",
    )
    page.click("Go")
    assert prepared(page)["warnings"] == []
    assert page("screenshot")["url"] == page_server.url("/plain")
    page = start_on_markup(
        reader, page_server, "<button>B</button><script>onbeforeunload = () => 'x'</script>"
    )
    page.click("B")
    assert (
        start_on_url(reader, page_server.url("/plain"), reuseExistingTab=True).tab_id == page.tab_id
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "markup",
    [
        "<input type=file aria-label=B>",
        "<button onclick='print()'>B</button>",
        "<button onclick='document.body.requestFullscreen()'>B</button>",
        "<button onclick='navigator.geolocation.getCurrentPosition(() => {})'>B</button>",
        "<button onclick='Notification.requestPermission()'>B</button>",
    ],
)
def test_a_page_that_requests_a_browser_permission_continues_without_it(
    reader: Reader, page_server: PageServer, markup: str
) -> None:
    page = start_on_markup(reader, page_server, markup)
    for _ in range(2):
        assert page.click("B")["clicked"] is True
    assert page("screenshot")["url"] == page_server.url("/task")
