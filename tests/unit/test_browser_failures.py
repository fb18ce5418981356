"""What the browser's errors become."""

from __future__ import annotations

import pytest
from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from runners.browser.failures import failure_of, is_context_lost
from runners.errors import (
    InvalidTarget,
    NavigationFailed,
    NavigationTimeout,
    PageCrashed,
    ToolFailed,
)

URL = "http://example.test:8080/a?token=t"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            Error("Page.goto: net::ERR_NAME_NOT_RESOLVED at http://x/\nCall log:\n"),
            NavigationFailed,
        ),
        (Error("Page.goto: net::ERR_CERT_DATE_INVALID at https://x/"), NavigationFailed),
        (Error("Page.goto: net::ERR_SOMETHING_NEW at http://x/"), NavigationFailed),
        (Error("Page.goto: net::ERR_CONNECTION_TIMED_OUT at http://x/"), NavigationTimeout),
        (PlaywrightTimeout("Page.goto: Timeout 30000ms exceeded."), NavigationTimeout),
        (TimeoutError(), NavigationTimeout),
        (Error("Page.goto: Page crashed"), PageCrashed),
        (Error("Target page, context or browser has been closed"), PageCrashed),
        (Error("Page.goto: Frame was detached"), PageCrashed),
        (Error("Protocol error (Page.navigate): Cannot navigate to invalid URL"), InvalidTarget),
        (Error("something at /usr/lib/secret/place.js:3"), NavigationFailed),
    ],
)
def test_each_error_of_the_browser_becomes_one_failure(
    error: Exception, kind: type[ToolFailed]
) -> None:
    failure = failure_of(error, URL)
    assert type(failure) is kind
    assert "/usr" not in failure.message
    assert "Call log" not in failure.message
    assert "token" not in failure.message


def test_a_network_failure_names_the_browsers_own_error_and_the_host() -> None:
    failure = failure_of(Error("net::ERR_CONNECTION_REFUSED"), URL)
    assert failure.details["netError"] == "ERR_CONNECTION_REFUSED"
    assert failure.message == "example.test:8080 refused the connection: nothing answers there."


def test_a_download_is_told_as_such() -> None:
    failure = failure_of(Error("Page.goto: Download is starting"), URL)
    assert (failure.code, failure.details["reason"]) == ("STEP_EXECUTION_FAILED", "download")


def test_a_document_that_gave_way_to_another_is_told_from_a_page_that_died() -> None:
    assert is_context_lost(Error("Protocol error: Execution context was destroyed."))
    assert is_context_lost(Error("Inspected target navigated or closed"))
    assert not is_context_lost(Error("Target page, context or browser has been closed"))
