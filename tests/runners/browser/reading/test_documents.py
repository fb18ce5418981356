"""Responses that are no ordinary page: errors, text, data, images, downloads."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.errors import InvalidTarget, NavigationFailed
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, html


def test_a_page_is_returned_in_the_promised_format(reader: Reader, page_server: PageServer) -> None:
    page = reader(page_server.url("/plain"))
    assert page == {
        "url": page_server.url("/plain"),
        "title": "Plain",
        "pageType": "page",
        "elementCount": 0,
        "contentSections": 1,
        "content": {
            "sections": [{"heading": "Plain", "level": 1, "text": "Nothing but text."}],
            "truncated": False,
        },
        "pageInfo": {
            "page": {
                "url": page_server.url("/plain"),
                "title": "Plain",
                "type": "page",
                "summary": "Nothing but text.",
            },
            "elements": [],
            "totalElements": 0,
            "truncated": False,
        },
        "httpStatus": 200,
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("path", "status", "title"), [("/missing", 404, "Gone"), ("/broken", 500, "Oops")]
)
def test_an_error_page_is_read_and_its_status_is_reported(
    reader: Reader, page_server: PageServer, path: str, status: int, title: str
) -> None:
    page = reader(page_server.url(path))
    assert (page["httpStatus"], page["title"], page["pageType"]) == (status, title, "error")
    assert [str(status) in warning for warning in page["warnings"]] == [True]


def test_an_error_status_without_a_page_is_an_empty_page(
    reader: Reader, page_server: PageServer
) -> None:
    page = reader(page_server.url("/empty-404"))
    assert (page["httpStatus"], page["content"]["sections"]) == (404, [])
    assert "404" in page["warnings"][0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/text", "第一行\nsecond line\n"),
        ("/data.json", '{"name": "x", "items": [1, 2]}'),
        ("/feed.xml", "<rss><item>News</item></rss>"),
    ],
)
def test_text_and_data_are_read_unchanged(
    reader: Reader, page_server: PageServer, path: str, text: str
) -> None:
    page = reader(page_server.url(path))
    assert page["content"]["sections"] == [{"heading": "", "level": 0, "text": text}]
    assert (page["pageType"], page["title"]) == ("document", path.lstrip("/"))


@pytest.mark.slow
def test_a_long_text_is_truncated(reader: Reader, page_server: PageServer) -> None:
    url = page_server.add(
        "/log", PageResponse("日志\n".encode() * 200_000, mime="text/plain; charset=utf-8")
    )
    content = reader(url, extract={"maxContentLength": 100})["content"]
    assert content["truncated"]
    assert content["sections"][0]["text"] == ("日志\n" * 40)[:100]


@pytest.mark.slow
def test_a_large_page_is_read_quickly_enough(reader: Reader, page_server: PageServer) -> None:
    rows = "".join(f"<tr><td>{n}<td><a href=/r/{n}>row {n}</a>" for n in range(20_000))
    page = reader(page_server.add("/huge", f"<title>Huge</title><table>{rows}</table>"))
    assert page["elementCount"] == 20_000
    assert page["content"]["truncated"]


@pytest.mark.parametrize("path", ["/report.zip", "/attached.html", "/unknown.bin", "/paper.pdf"])
def test_a_download_fails_and_leaves_nothing_on_disk(
    reader: Reader, page_server: PageServer, path: str
) -> None:
    reader(page_server.url("/plain"))
    before = files_of_the_browser()
    failure = reader.failure(page_server.url(path))
    assert failure.code == "STEP_EXECUTION_FAILED"
    assert failure.details["reason"] in ("download", "unreadable_document")
    assert reader(page_server.url("/other"))["title"] == "Other"  # a download would end meanwhile
    assert files_of_the_browser() <= before


def files_of_the_browser() -> set[Path]:
    """Return the files beside profiles and caches, where downloads would be stored."""
    homes = Path(tempfile.gettempdir()).glob("continuity-browser-*/playwright-artifacts-*")
    return {path for home in homes for path in home.rglob("*") if path.is_file()}


def test_an_image_has_no_text_to_read(reader: Reader, page_server: PageServer) -> None:
    failure = reader.failure(page_server.url("/pixel.png"))
    assert failure.details["reason"] == "unreadable_document"
    assert failure.details["contentType"] == "image/png"


@pytest.mark.parametrize(
    ("path", "net_error"),
    [
        ("/hang-up", "ERR_EMPTY_RESPONSE"),
        ("/redirect-loop", "ERR_TOO_MANY_REDIRECTS"),
        ("/no-content", "ERR_ABORTED"),
    ],
)
def test_a_refused_connection_is_reported_with_a_plain_message(
    reader: Reader, page_server: PageServer, path: str, net_error: str
) -> None:
    failure = reader.failure(page_server.url(path))
    assert isinstance(failure, NavigationFailed)
    assert failure.details["netError"] == net_error
    assert "net::" not in failure.message
    assert "Call log" not in json.dumps(failure.as_dict())
    assert reader(page_server.url("/plain"))["title"] == "Plain"


@pytest.mark.parametrize(
    ("url", "net_error"),
    [
        ("http://nowhere.invalid/", "ERR_NAME_NOT_RESOLVED"),
        ("http://127.0.0.1:1/", "ERR_UNSAFE_PORT"),
        ("http://127.0.0.1:9/", "ERR_UNSAFE_PORT"),
    ],
)
def test_unreachable_hosts_and_ports_are_named(reader: Reader, url: str, net_error: str) -> None:
    assert reader.failure(url).details["netError"] == net_error


def test_a_server_without_tls_is_not_trusted(reader: Reader, page_server: PageServer) -> None:
    failure = reader.failure(page_server.url("/plain").replace("http:", "https:"))
    assert failure.details["netError"].startswith("ERR_SSL_")
    assert "TLS" in failure.message


def test_an_invalid_address_is_rejected_before_any_request(reader: Reader) -> None:
    assert isinstance(reader.failure("file:///etc/passwd"), InvalidTarget)


def test_a_remote_caller_cannot_open_the_local_network(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    failure = open_reader(trust="remote").failure(page_server.url("/plain"))
    assert failure.code == "TRUST_LEVEL_NOT_ALLOWED"
    assert page_server.hits["/plain"] == 0


def test_a_page_under_a_strict_policy_is_read(reader: Reader, page_server: PageServer) -> None:
    page = reader(page_server.url("/strict-csp"), screenshot=True)
    assert page["content"]["sections"][0]["heading"] == "Strict"
    assert page["screenshotArtifactId"]


def test_encodings_other_than_utf_8_are_read(reader: Reader, page_server: PageServer) -> None:
    body = "<title>简体</title><p>中文内容".encode("gb18030")
    page = reader(page_server.add("/gbk", PageResponse(body, mime="text/html; charset=gb18030")))
    assert (page["title"], page["content"]["sections"][0]["text"]) == ("简体", "中文内容")


def test_a_page_without_a_body_is_empty(reader: Reader, page_server: PageServer) -> None:
    removed = "<p>x<script>document.documentElement.remove()</script>"
    for path, markup in {"/none": "", "/removed": removed}.items():
        page = reader(page_server.add(path, html(markup)))
        assert page["content"]["sections"] == []


def test_the_frames_of_a_frameset_are_read(reader: Reader, page_server: PageServer) -> None:
    frames = "<frameset cols=50%,50%><frame src=/plain><frame src=/other></frameset>"
    text = reader.text(page_server.add("/frames", frames))
    assert "Nothing but text." in text
    assert "Another page." in text
