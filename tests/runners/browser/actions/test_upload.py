"""Files that an agent gives to a page: chosen once, in the field that it names."""

from __future__ import annotations

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup

SHOWS = (
    "<script>let got = []; document.onchange = async (event) => { for (const file of"
    " event.target.files) got.push(`${file.name} ${file.type} ${await file.text()}`) }</script>"
)
FIELD = "<input type=file aria-label=Choose>"
FIELDS = [
    FIELD,
    "<input type=file id=f hidden><button type=button onclick=f.click()>Choose</button>",
    "<label>Choose<input type=file style='opacity:0;position:absolute'></label>",
    '<iframe srcdoc="<input type=file aria-label=Choose'
    " onchange='parent.document.onchange(event)'>\"></iframe>",
]


def upload(page: TaskPage, *names: str) -> object:
    """Give files to the field named Choose, and return what the page then got."""
    files = [{"artifactId": name} for name in names]
    page("upload", clickId=page.index()["Choose"], files=files)
    page.evaluate("new Promise((go) => setInterval(() => got.length && go(), 10))")
    return page.evaluate("got")


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_its_label_and_a_button_that_asks_for_files_get_them(
    reader: Reader, page_server: PageServer, field: str
) -> None:
    reader.uploads["cv.txt"] = b"Ada"
    page = start_on_markup(reader, page_server, SHOWS + field)
    assert upload(page, "cv.txt") == ["cv.txt text/plain Ada"]


def test_several_files_go_only_to_a_field_that_takes_several(
    reader: Reader, page_server: PageServer
) -> None:
    reader.uploads |= {"a.csv": b"1", "b": b"2"}
    page = start_on_markup(reader, page_server, SHOWS + FIELD.replace("type", "multiple type"))
    assert upload(page, "a.csv", "b") == ["a.csv text/csv 1", "b application/octet-stream 2"]
    page = start_on_markup(reader, page_server, SHOWS + FIELD)
    files = [{"artifactId": name} for name in ("a.csv", "b")]
    error = page.error("upload", clickId=page.index()["Choose"], files=files)
    assert (error["errorCode"], error["details"]) == ("INVALID_PARAMETER", {"effect": "unknown"})
    assert page.evaluate("got") == []


@pytest.mark.slow
def test_an_element_that_asks_for_no_file_is_an_error_with_an_unknown_effect(
    reader: Reader, page_server: PageServer
) -> None:
    reader.uploads["a"] = b"1"
    page = start_on_markup(reader, page_server, "<button id=b>Send</button>")
    error = page.error("upload", clickId=page.index()["Send"], files=[{"artifactId": "a"}])
    assert (error["errorCode"], error["details"]) == ("INVALID_PARAMETER", {"effect": "unknown"})
    assert page.log.count("click:b:true") == 1


def test_a_click_on_a_file_field_still_chooses_nothing(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, SHOWS + FIELD)
    assert page.click("Choose")["clicked"] is True
    assert page.evaluate("got") == []
