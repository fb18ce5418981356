"""Downloads: stored by the action that starts them, with their text; too large ones refused."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from playwright.async_api import Error, Page

from runners.browser.session import downloads
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.browser.pdf import pdf_of
from tests.support.browser.task_page import TaskPage, start_on_markup, start_on_url

CSV = "date,amount\n2026-01-02,12.50 €\n"


def attached(body: bytes, name: str, **options: Any) -> PageResponse:
    """Return a response that is a file to download."""
    headers = {"Content-Disposition": f"attachment; filename={name}"}
    return PageResponse(body, mime="application/octet-stream", headers=headers, **options)


def page_with(reader: Reader, server: PageServer, path: str, response: PageResponse) -> TaskPage:
    """Start a task on a page with a link to the response."""
    server.add(path, response)
    return start_on_markup(reader, server, f"<a href={path}>Get</a><p>Your bills.")


def test_a_click_stores_the_file_and_returns_its_text(
    reader: Reader, page_server: PageServer
) -> None:
    page = page_with(reader, page_server, "/bill", attached(CSV.encode(), "bill.csv"))
    output = page.click("Get")
    file = {"fileName": "bill.csv", "bytes": len(CSV.encode()), "mediaType": "text/csv"}
    assert output["downloads"] == [{"artifactId": "art_1", **file, "text": CSV}]
    assert "warnings" not in output
    assert page.saved() == ("download", "text/csv", CSV.encode())
    assert page("wait_for_loaded") == {"status": "complete"}
    assert "Your bills." in page("readability_extract")["markdown"]


def test_a_long_pdf_is_stored_with_its_whole_text_beside_it(
    reader: Reader, page_server: PageServer
) -> None:
    body = pdf_of(*["word " * 500] * 3)
    page = page_with(reader, page_server, "/pdf", PageResponse(body, mime="application/pdf"))
    (file,) = page.click("Get")["downloads"]
    assert (file["mediaType"], len(file["text"]), file["truncated"]) == (
        "application/pdf",
        4000,
        True,
    )
    assert [kind for kind, _, _ in reader.saved] == ["download", "file"]
    assert file["textArtifactId"] == "art_2"
    assert page.saved()[2].count(b"word") == 1500


@pytest.mark.parametrize(
    ("markup", "name"),
    [
        ("<button onclick=\"location='/file'\">Get</button>", "file.bin"),
        ("<a target=_blank href=/file>Get</a>", "file.bin"),
        ("<a download=page.html href=/plain>Get</a>", "page.html"),
        (
            "<a id=a download=made.txt>Get</a><script>a.href ="
            " URL.createObjectURL(new Blob(['made']))</script>",
            "made.txt",
        ),
        ("<form action=/file><button>Get</button></form>", "file.bin"),
        ("<iframe name=f></iframe><a href=/file target=f>Get</a>", "file.bin"),
    ],
)
def test_every_way_to_a_file_stores_it(
    reader: Reader, page_server: PageServer, markup: str, name: str
) -> None:
    page_server.add("/file", attached(b"\0\1\2", "file.bin"))
    page = start_on_markup(reader, page_server, markup)
    output = page.click("Get")
    until = time.monotonic() + 20.0
    while "downloads" not in output and time.monotonic() < until:  # it may start after the click
        output = page("wait_for_loaded")
    (file,) = output["downloads"]
    assert file["fileName"] == name
    assert ("text" in file) == (name != "file.bin")


def test_a_task_that_starts_on_a_file_stores_it(reader: Reader, page_server: PageServer) -> None:
    page_server.add("/file", attached(b"words", "notes"))
    output = reader.call("task_start", url=page_server.url("/file")).output or {}
    assert (output["url"], output["downloads"][0]["text"]) == ("about:blank", "words")
    assert output["downloads"][0]["mediaType"] == "text/plain"


def test_a_task_that_starts_on_a_file_starts_also_if_its_page_does_not_give_its_title(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def title(_: Page) -> str:
        raise Error("Page.title: Execution context was destroyed")

    monkeypatch.setattr(Page, "title", title)
    result = reader.call("task_start", url=page_server.add("/file", attached(b"words", "notes")))
    output = result.output or {}
    assert (output["downloads"][0]["text"], "title" in output) == ("words", False)


def test_a_long_text_is_cut_in_the_result_and_whole_in_the_artifact(
    reader: Reader, page_server: PageServer
) -> None:
    page = page_with(reader, page_server, "/log", attached(b"line\n" * 2000, "log.txt"))
    (file,) = page.click("Get")["downloads"]
    assert (len(file["text"]), file["truncated"], file["bytes"]) == (4000, True, 10_000)
    assert len(page.saved()[2]) == 10_000


def test_a_file_that_is_too_large_is_refused_and_deleted(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MAX_BYTES", 1000)
    page = page_with(reader, page_server, "/big", attached(b"x" * 100_000, "big.bin"))
    output = page.click("Get")
    (warning,) = output["warnings"]
    assert warning == (
        "The download big.bin was not stored: It has at least 100000 bytes; the limit is 1000."
    )
    assert "downloads" not in output
    assert reader.saved == []


def test_a_download_that_takes_longer_than_the_click_is_stored_by_the_next_wait(
    reader: Reader, page_server: PageServer
) -> None:
    page = page_with(reader, page_server, "/slow-file", attached(b"x" * 9000, "s.txt", hang=60.0))
    number = page.index()["Get"]
    result = reader.call("browser_click", seconds=2.0, tabId=page.tab_id, clickId=number)
    (warning,) = (result.output or {})["warnings"]
    assert warning.startswith("The download s.txt is not finished (")
    threading.Timer(0.1, page_server.closing.set).start()
    (file,) = page("wait_for_loaded")["downloads"]
    assert (file["fileName"], file["bytes"]) == ("s.txt", 9000)


def test_files_beyond_the_fifth_that_a_page_starts_are_not_stored(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button>Get</button><script>onclick = () => { for (let n = 0; n < 7; n++) { const a ="
        " document.createElement('a'); a.href = URL.createObjectURL(new Blob([n])); a.download ="
        " `${n}.txt`; a.click(); } }</script>",
    )
    stored, refused = [], []
    output = page.click("Get")
    for _ in range(3):
        stored += [file["fileName"] for file in output.get("downloads", ())]
        refused += output.get("warnings", ())
        output = page("wait_for_loaded")
    assert len(stored) + len(refused) == 7, (stored, refused)
    assert len(stored) >= 5


def test_a_file_of_one_of_the_products_own_pages_is_not_stored(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_with(reader, page_server, "/bill", attached(b"secret", "bill.csv"))
    number = page.index()["Get"]
    page_server.pages["/bill"] = PageResponse(
        status=302, headers={"Location": page_server.url("/own").replace("127.0.0.1", "localhost")}
    )
    page_server.add("/own", attached(b"secret", "own.csv"))
    monkeypatch.setenv("CONTINUITY_PUBLIC_URL", f"http://localhost:{page_server.server_port}")
    monkeypatch.setenv("CONTINUITY_OWN_PORTS", "1")
    output = page("click", clickId=number)
    (warning,) = output["warnings"]
    assert warning.startswith("The download own.csv was not stored: ")
    assert reader.saved == []


def test_a_page_that_is_no_tasks_stores_nothing(reader: Reader, page_server: PageServer) -> None:
    page = page_with(reader, page_server, "/bill", attached(b"x", "bill.csv"))
    reader.call("task_stop")
    assert reader.call("click_element", locator={"mode": "semantic", "query": "Get"}).ok
    assert start_on_url(reader, page_server.url("/plain"), reuseExistingTab=True)(
        "wait_for_loaded"
    ) == {"status": "complete"}
    assert (reader.saved, page_server.hits["/bill"]) == ([], 1)
    assert page.tab_id
