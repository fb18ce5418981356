"""Reading a task's page: load state, screenshot, text, markup."""

from __future__ import annotations

import base64

import pytest

from runners.actions.page_preparation import prepare_page
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolResult
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup, start_on_url


def image_size(page: TaskPage, jpeg: bytes) -> list[int]:
    """Return width and height of an image, as a browser reads it."""
    address = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
    return list(
        page.evaluate(
            "new Promise((done) => { const image = new Image(); image.onload = () =>"
            f" done([image.naturalWidth, image.naturalHeight]); image.src = '{address}'; }})"
        )
    )


@pytest.mark.slow
def test_the_action_waits_until_the_page_is_fully_loaded(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/late.png", PageResponse(b"", delay=4.0))
    page = start_on_markup(reader, page_server, "<img src=/late.png><p>text")
    assert page.evaluate("document.readyState") == "interactive"
    assert page("wait_for_loaded") == {"status": "complete"}
    assert page.evaluate("document.readyState") == "complete"


@pytest.mark.slow
def test_a_page_that_never_loads_fully_ends_the_wait_and_can_be_read(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<img src=/slow.png><p>Here already")
    error = page.error("wait_for_loaded", timeoutMs=300)
    assert (error["errorCode"], error["retryable"]) == ("NAVIGATION_TIMEOUT", True)
    assert page("readability_extract")["markdown"] == "Here already"


@pytest.mark.slow
def test_the_action_waits_for_a_page_that_a_click_requested(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<a href=/slow>Go</a>")
    page.click("Go")
    assert page("wait_for_loaded") == {"status": "complete"}
    assert page("readability_extract")["title"] == "Slow"


@pytest.mark.slow
def test_a_screenshot_covers_the_viewport_or_the_whole_page(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, "<body style='margin:0'><p style='margin:0;height:2500px'>long"
    )
    output = page("screenshot")
    kind, mime_type, data = page.saved()
    assert (output["url"], output["width"], output["height"]) == (
        page_server.url("/task"),
        1280,
        720,
    )
    assert (kind, mime_type) == ("screenshot", "image/jpeg")
    full_page = page("screenshot", fullPage=True)
    assert (
        [full_page["width"], full_page["height"]]
        == image_size(page, page.saved()[2])
        == [1280, 2500]
    )
    assert image_size(page, data) == [1280, 720]


@pytest.mark.slow
def test_a_screenshot_of_a_very_long_page_is_limited_in_height(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, "<body style='margin:0'><p style='margin:0;height:20000px'>x"
    )
    output = page("screenshot", fullPage=True)
    assert output["height"] == 16_000
    assert output["warnings"] == ["The screenshot ends at 16000 of 20000 pixels."]


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["a", "中"])
@pytest.mark.parametrize("size", [262_142, 262_143, 262_144, 2_097_152, 2_097_153])
def test_the_size_of_a_text_decides_whether_it_is_inline_or_an_artifact(
    reader: Reader, page_server: PageServer, size: int, letter: str
) -> None:
    letter_bytes = len(letter.encode())
    text = letter * (size // letter_bytes) + "b" * (size % letter_bytes)
    page = start_on_url(
        reader, page_server.add("/long", f"<meta charset=utf-8><title>T</title><p>{text}")
    )
    if size > 2_097_152:
        error = page.error("readability_extract")
        assert (error["errorCode"], error["retryable"]) == ("READABILITY_TOO_LARGE", False)
        return
    output = page("readability_extract")
    assert (output["contentLengthBytes"], output["title"]) == (size, "T")
    assert output["truncated"] is (size >= 262_144)
    if output["truncated"]:
        assert "markdown" not in output
        assert page.saved() == ("file", "text/markdown", text.encode())
    else:
        assert output["markdown"] == text
        assert "artifactId" not in output


def test_a_text_has_its_headings_and_links(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<nav><a href=/>Home</a></nav><main><h1>News</h1><p>First <a href=/x>story</a> of"
        " the day.</p><h2>More</h2><p>Second.</p></main>",
    )
    assert page("readability_extract")["markdown"] == (
        "# News\n\nFirst [story](x) of the day.\n\n## More\n\nSecond."
    )


@pytest.mark.slow
def test_a_document_without_text_returns_none(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<a href=/pixel.png>Go</a>")
    page.click("Go")
    error = page.error("readability_extract")
    assert error["errorCode"] == "STEP_EXECUTION_FAILED"
    assert error["details"]["reason"] == "unreadable_document"


def test_markup_is_stored_with_shadow_roots_and_without_secrets(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<x-a></x-a><input type=password value='hunter2&amp;secret'><p data-x='hunter2&amp;secret'>"
        "<script>document.querySelector('x-a').attachShadow({mode: 'open'}).innerHTML ="
        " '<b>inside</b>'</script>",
    )
    output = page("get_html")
    kind, mime_type, data = page.saved()
    assert (kind, mime_type, output["url"]) == ("file", "text/html", page_server.url("/task"))
    assert data.startswith(b"<!DOCTYPE html>\n<html>")
    assert b'<template shadowrootmode="open"><b>inside</b></template>' in data
    assert b"hunter2" not in data
    assert b'value="***"' in data


def test_markup_of_one_element_is_stored(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader, page_server, "<ul><li>One</li><li class=x>Two &amp; more</li></ul>"
    )
    page("get_html", xpath="//li[2]")
    assert page.saved()[2] == b'<li class="x">Two &amp; more</li>'
    assert page.error("get_html", xpath="//li[3]")["details"]["reason"] == "no_match"
    assert page.error("get_html", xpath="//li[")["errorCode"] == "INVALID_PARAMETER"


def test_markup_that_cannot_be_stored_is_reported(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def disk_full(data: bytes, **metadata: str) -> str:
        raise OSError(28, "No space left on device", "/a/secret/path")

    page = start_on_markup(reader, page_server, "<p>x")
    monkeypatch.setattr(reader, "_save", disk_full)
    for name in ("get_html", "screenshot"):
        error = page.error(name)
        assert (error["errorCode"], error["retryable"]) == ("ARTIFACT_UPLOAD_FAILED", True)
        assert "secret" not in str(error)


def test_markup_beyond_the_upload_limit_is_not_stored(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<p id=p>x")
    page.evaluate("p.append(new Comment('x'.repeat(26 * 1024 * 1024)))")
    error = page.error("get_html")
    assert (error["errorCode"], error["details"]["reason"]) == (
        "ARTIFACT_UPLOAD_FAILED",
        "too_large",
    )


def test_a_real_page_is_prepared_with_screenshot_and_text(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<h1>Hello</h1>")

    async def act(name: str, args: object) -> ToolResult:
        return await invoke(ToolCall(name, dict(args)), reader.context())  # type: ignore[call-overload]

    output = reader.wait(prepare_page(act, page.tab_id)).output or {}
    assert (output["missing"], output["warnings"]) == ([], [])
    assert output["readability"]["markdown"] == "# Hello"
    assert output["screenshot"]["width"] == 1280


@pytest.mark.slow
def test_a_redirect_to_a_page_that_never_answers_is_reported_in_time(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<a href=/never>Go</a>")
    page.click("Go")
    error = page.error("dom_index")
    assert (error["errorCode"], error["retryable"]) == ("NAVIGATION_TIMEOUT", True)
    assert start_on_url(reader, page_server.url("/plain"))("wait_for_loaded") == {
        "status": "complete"
    }
