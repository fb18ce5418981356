"""Which bytes a Range header requests, and file names that are safe to save."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.api.downloads import ByteRange, RangeOutside, headers_of, parse_range, safe_name
from artifacts.models import Artifact


@pytest.mark.parametrize(
    ("header", "span"),
    [
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=2-", ByteRange(2, 10)),
        ("bytes=-3", ByteRange(7, 10)),
        ("bytes=-99", ByteRange(0, 10)),
        ("bytes=8-99", ByteRange(8, 10)),
        ("  bytes= 1-2  ", ByteRange(1, 3)),
    ],
)
def test_one_range_is_honoured_up_to_the_end_of_the_artifact(header: str, span: ByteRange) -> None:
    assert parse_range(header, 10) == span


@pytest.mark.parametrize(
    "header", ["", "bytes=-", "bytes=5-2", "bytes=0-1,4-5", "items=0-1", "bytes=a-b", "bytes=١-٢"]
)
def test_several_or_malformed_ranges_request_the_whole_artifact(header: str) -> None:
    assert parse_range(header, 10) is None


@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0)])
def test_a_range_without_a_byte_differs_from_no_range(header: str, size: int) -> None:
    with pytest.raises(RangeOutside):
        parse_range(header, size)


@given(st.text(max_size=12), st.integers(0, 100))
def test_every_range_is_within_the_artifact(header: str, size: int) -> None:
    try:
        span = parse_range(f"bytes={header}", size)
    except RangeOutside:
        return
    assert span is None or 0 <= span.start < span.stop <= size


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("page.html", "page.html"),
        ("a\r\nSet-Cookie: x=1.png", "a_Set-Cookie_ x=1.png"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ('say "hi"\\.txt', "say _hi_.txt"),
        ("\u202egnp.exe", "_gnp.exe"),
        ("...", "artifact"),
        ("", "artifact"),
        ("截图.png", "截图.png"),
    ],
)
def test_names_lose_harmful_characters(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text(max_size=300), st.text(max_size=60))
def test_no_name_or_type_ever_breaks_a_header(name: str, mime_type: str) -> None:
    headers = headers_of(Artifact(name=name, mime_type=mime_type, sha256="0" * 64))
    for value in headers.values():
        assert value.isascii()
        assert value.isprintable()
    assert headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ("text/html", "text/html; charset=utf-8"),
        ("text/plain; charset=latin-1", "text/plain; charset=latin-1"),
        ("image/svg+xml", "image/svg+xml"),
        ("image/png\r\nX: y", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_a_content_type_is_sent_if_it_is_valid(stored: str, sent: str) -> None:
    assert headers_of(Artifact(name="a", mime_type=stored, sha256=""))["Content-Type"] == sent
