"""The site of a failure is the host of the page that the run failed on."""

from __future__ import annotations

from typing import Any

import pytest

from runs.search.sites import SITE_MAX, site_of_error, site_of_subject

SHOP, OTHER = {"url": "https://me:pw@Shop.example/a?b#c"}, {"url": "http://other.example:8080/"}


@pytest.mark.parametrize(
    ("error", "site"),
    [
        (None, ""),
        ({"errorCode": "X"}, ""),
        ({"details": SHOP}, "shop.example"),
        ({"details": {**OTHER, "items": [SHOP]}}, "other.example:8080"),
        ({"details": {"items": [OTHER, SHOP, SHOP, {"url": 7}, {}, "x"]}}, "shop.example"),
        ({"name": "Open https://shop.example/x, then wait"}, "shop.example"),
        ({"name": "Open it", "details": {"url": "file:///etc/passwd"}}, ""),
        ({"details": {"url": "https://[::1/"}}, ""),
        ({"details": "none"}, ""),
    ],
)
def test_the_site_is_named_by_the_details_the_pages_or_the_step(
    error: dict[str, Any] | None, site: str
) -> None:
    assert site_of_error(error) == site


@pytest.mark.parametrize(
    ("subject", "site"),
    [
        ("Shop.example/orders/2026", "shop.example"),
        ("docs.example.com · 16 pages", "docs.example.com"),
        ("news.example.org, a.example +3 · 40 pages", "news.example.org"),
        ("localhost:8000/a", "localhost:8000"),
        ("127.0.0.1:8000", "127.0.0.1:8000"),
        ("Find the opening hours of shop.example", ""),
        ("read_file ×2", ""),
        ("e.g. this", ""),
        ("", ""),
    ],
)
def test_without_a_page_the_site_is_the_host_that_the_subject_begins_with(
    subject: str, site: str
) -> None:
    assert site_of_subject(subject) == site


def test_a_long_host_is_cut_to_what_the_column_stores() -> None:
    assert site_of_error({"details": {"url": f"https://{'a' * 300}/"}}) == "a" * SITE_MAX
