"""Documents whose connection breaks: the wait for such a document fails, not the task's tab."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, html
from tests.support.browser.task_page import start_on_markup, start_on_url

CUT = html(
    "<title>Cut</title><p>The beginning.</p>" + "<p>x</p>" * 500,
    headers={"Content-Length": "90000", "Connection": "close"},
)


@pytest.fixture
def resetting_url() -> Iterator[str]:
    """Yield a URL whose server resets each connection once it has read the request."""
    listening = socket.create_server(("127.0.0.1", 0))

    def reset_connections() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.recv(4096)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    thread = threading.Thread(target=reset_connections, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(5)


def test_a_navigation_whose_connection_is_reset_does_not_fail_the_page_that_started_it(
    reader: Reader, page_server: PageServer, resetting_url: str
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        f"<script>location = '{resetting_url}'</script><script src=/never></script><p>x",
    )
    (warning,) = page("wait_for_loaded")["warnings"]
    assert "could not be opened" in warning
    assert start_on_url(reader, page_server.url("/plain"), reuseExistingTab=True).tab_id == (
        page.tab_id
    )


def test_a_click_that_opens_a_cut_document_is_made_and_the_tab_stays_open(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/cut", CUT)
    page = start_on_markup(reader, page_server, "<a href=/cut>Go</a>")
    clicked = page.click("Go")
    for name in ("wait_for_loaded", "readability_extract"):
        error = page.error(name)
        assert error["details"]["netError"] == "ERR_CONTENT_LENGTH_MISMATCH"
    assert page("find_text", text="The beginning.")["total"] == 1
    back = page("go_back")
    assert back["url"] == page_server.url("/task")
    (warning,) = clicked.get("warnings", []) + back.get("warnings", [])
    assert warning == (
        f"The connection closed in the middle of {page_server.url('/cut')}: the page has only its"
        " beginning."
    )


def test_a_task_goes_on_after_it_started_on_a_cut_document(
    reader: Reader, page_server: PageServer
) -> None:
    error = reader.call("task_start", url=page_server.add("/cut", CUT)).error or {}
    assert error["details"]["netError"] == "ERR_CONTENT_LENGTH_MISMATCH"
    (tab,) = (reader.call("browser_list_tabs").output or {})["tabs"]
    page = start_on_url(reader, page_server.url("/plain"), reuseExistingTab=True)
    assert page.tab_id == tab["tabId"]
