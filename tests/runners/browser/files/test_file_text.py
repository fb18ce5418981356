"""The media type and the text of files that pages download."""

from __future__ import annotations

import pytest

from runners.browser.files.file_text import has_text, media_type_of, text_of
from tests.support.browser.pdf import pdf_of


@pytest.mark.parametrize(
    ("name", "data", "media_type", "text"),
    [
        ("a.csv", b"a;b\n", "text/csv", "a;b\n"),
        ("a.json", b"{}", "application/json", "{}"),
        ("notes", "naïve".encode(), "text/plain", "naïve"),
        ("bom.txt", "\ufeffx".encode(), "text/plain", "x"),
        ("wide.txt", "größer".encode("utf-16"), "text/plain", "größer"),
        ("old.txt", "größer".encode("cp1252"), "text/plain", "größer"),
        ("notes", b"\xff\xfe\0", "application/octet-stream", None),
        ("binary.txt", b"a\0b", "text/plain", None),
        ("a.zip", b"PK", "application/zip", None),
        ("empty.txt", b"", "text/plain", ""),
    ],
)
def test_the_text_of_a_file(name: str, data: bytes, media_type: str, text: str | None) -> None:
    assert media_type_of(name, data) == media_type
    if has_text(media_type):
        assert text_of(data, media_type, seconds=1.0) == text
    else:
        assert text is None


def test_the_text_of_a_pdf_is_that_of_its_pages() -> None:
    data = pdf_of("Invoice 17", "Total 12.50")
    assert media_type_of("download.bin", data) == "application/pdf"
    text = text_of(data, "application/pdf", seconds=20.0) or ""
    assert text.split() == ["Invoice", "17", "Total", "12.50"]


def test_a_page_of_a_pdf_that_cannot_be_read_does_not_hide_the_others() -> None:
    broken = pdf_of("First", "Second", "Third").replace(b"(Second) Tj", b"[(Second TJ")
    text = text_of(broken, "application/pdf", seconds=20.0) or ""
    assert ("First" in text, "Third" in text) == (True, True)
    assert "[this page could not be read" in text


def test_a_pdf_without_a_text_or_that_takes_too_long_has_none() -> None:
    for data, seconds in ((b"%PDF-1.4\n%%EOF\n", 20.0), (pdf_of(""), 20.0), (pdf_of("x"), 0.001)):
        assert text_of(data, "application/pdf", seconds=seconds) is None
