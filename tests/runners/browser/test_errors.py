"""The mapping of the browser's errors to tool failures."""

from __future__ import annotations

import pytest
from playwright.async_api import Error

from runners.browser.errors import is_context_lost, navigation_failure
from runners.errors import (
    HttpErrorPage,
    InvalidTarget,
    NavigationFailed,
    NavigationTimeout,
    PageCrashed,
    ToolFailed,
)

URL = "http://example.test:8080/a?token=t"


@pytest.mark.parametrize(
    ("browser_error", "failure_class"),
    [
        ("net::ERR_NAME_NOT_RESOLVED", NavigationFailed),
        ("net::ERR_CERT_DATE_INVALID", NavigationFailed),
        ("net::ERR_SOMETHING_NEW", NavigationFailed),
        ("net::ERR_CONNECTION_TIMED_OUT", NavigationTimeout),
        ("CDPSession.send: Page crashed", PageCrashed),
        ("CDPSession.send: Target page, context or browser has been closed", PageCrashed),
        ("Protocol error (Page.navigate): Cannot navigate to invalid URL", InvalidTarget),
        ("something at /usr/lib/secret/place.js:3\nCall log:", NavigationFailed),
    ],
)
def test_each_browser_error_maps_to_one_failure(
    browser_error: str, failure_class: type[ToolFailed]
) -> None:
    failure = navigation_failure(browser_error, URL)
    assert type(failure) is failure_class
    assert "/usr" not in failure.message
    assert "Call log" not in failure.message
    assert "token" not in failure.message


def test_a_network_failure_names_the_browsers_own_error_and_the_host() -> None:
    failure = navigation_failure("net::ERR_CONNECTION_REFUSED", URL)
    assert failure.details["netError"] == "ERR_CONNECTION_REFUSED"
    assert failure.message == "example.test:8080 refused the connection: nothing answers there."


@pytest.mark.parametrize(
    ("net_error", "advice"),
    [
        ("ERR_TOO_MANY_REDIRECTS", "log in first"),
        ("ERR_CONTENT_LENGTH_MISMATCH", "The address was reached."),
        ("ERR_NAME_NOT_RESOLVED", "Correct the host name."),
        ("ERR_CONNECTION_REFUSED", "Check that the address is right"),
    ],
)
def test_the_advice_fits_the_network_error(net_error: str, advice: str) -> None:
    assert advice in navigation_failure(f"net::{net_error}", URL).recovery


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "Log in first"), (404, "Correct the address."), (429, "later"), (503, "later")],
)
def test_the_advice_fits_the_http_status(status: int, advice: str) -> None:
    assert advice in HttpErrorPage(status, "x", details={}).recovery


def test_a_replaced_document_is_distinguished_from_a_crashed_page() -> None:
    assert is_context_lost(Error("Protocol error: Execution context was destroyed."))
    assert is_context_lost(Error("Inspected target navigated or closed"))
    assert not is_context_lost(Error("Target page, context or browser has been closed"))
