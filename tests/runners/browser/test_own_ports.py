"""No tool reaches the product's own ports, whoever calls it: one check before each navigation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runners.errors import ToolFailed
from tests.support.browser.page_actions import evaluate
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, serve_pages


@pytest.fixture
def product(monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServer]:
    """Serve pages at a port of the product."""
    with serve_pages() as server:
        monkeypatch.setenv("CONTINUITY_OWN_PORTS", str(server.server_port))
        yield server


def test_no_tool_of_a_local_caller_opens_a_page_of_the_product(
    reader: Reader, product: PageServer
) -> None:
    for name in ("open_page", "read_page", "task_start"):
        error = reader.call(name, url=product.url("/plain")).error or {}
        assert error["errorCode"] == "INVALID_TARGET", name
    assert product.hits["/plain"] == 0


def test_a_page_that_leads_to_the_product_is_neither_read_nor_used(
    reader: Reader, page_server: PageServer, product: PageServer
) -> None:
    moved = PageResponse(status=302, headers={"Location": product.url("/plain")})
    url = page_server.add("/there", moved)
    assert isinstance(reader.failure(url), ToolFailed)
    assert (reader.call("open_page", url=url).error or {})["errorCode"] == "INVALID_TARGET"
    reader.call("open_page", url=page_server.url("/plain"))
    evaluate(reader, f"location.href = {product.url('/plain')!r}")
    body = {"locator": {"mode": "selector", "selector": "body"}}
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("read_current_page", {}),
        ("click_element", body),
    )
    for name, args in calls:
        error = reader.call(name, **args).error or {}
        assert error["errorCode"] == "INVALID_TARGET", (name, error)
