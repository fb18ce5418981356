"""What the browser's errors mean for a caller: a ToolFailed each, without paths or traces."""

from __future__ import annotations

import logging
import re
from urllib.parse import urlsplit

from runners.errors import (
    InvalidTarget,
    NavigationFailed,
    NavigationTimeout,
    PageCrashed,
    ToolFailed,
)

logger = logging.getLogger(__name__)

_NET_ERROR = re.compile(r"net::(ERR_[A-Z0-9_]+)")
_GONE = re.compile(
    r"Target closed|has been closed|Page crashed|Target crashed|Connection closed|Browser closed"
    r"|Session closed|Frame was detached|browser has disconnected",
    re.IGNORECASE,
)
_INVALID_URL = re.compile(r"invalid URL", re.IGNORECASE)
_CONTEXT_GONE = re.compile(
    r"context was destroyed|Cannot find context|context with specified id|Promise was collected"
    r"|navigated or closed|No frame (for|with) given id|Inspected target",
    re.IGNORECASE,
)
_OTHER_DOCUMENT = re.compile(
    r"Cannot find context|Could not find object with given id|Invalid remote object id",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"]*"')  # addresses, which may hold secrets
_TIMED_OUT = frozenset({"ERR_TIMED_OUT", "ERR_CONNECTION_TIMED_OUT"})

_SENTENCES = {
    "ERR_NAME_NOT_RESOLVED": "The host name {host} cannot be resolved.",
    "ERR_CONNECTION_REFUSED": "{host} refused the connection: nothing answers there.",
    "ERR_CONNECTION_RESET": "{host} broke the connection off.",
    "ERR_CONNECTION_CLOSED": "{host} closed the connection without an answer.",
    "ERR_EMPTY_RESPONSE": "{host} closed the connection without an answer.",
    "ERR_ADDRESS_UNREACHABLE": "{host} cannot be reached from here.",
    "ERR_INTERNET_DISCONNECTED": "This machine has no network connection.",
    "ERR_TOO_MANY_REDIRECTS": "The address redirects without end.",
    "ERR_INVALID_REDIRECT": "The address redirects to something that is no address.",
    "ERR_UNSAFE_REDIRECT": "The address redirects to something that may not be opened.",
    "ERR_UNSAFE_PORT": "The browser does not open that port.",
    "ERR_INVALID_HTTP_RESPONSE": "{host} answered with something that is not HTTP.",
    "ERR_CONTENT_DECODING_FAILED": "{host} sent a body that does not match its own headers.",
    "ERR_INCOMPLETE_CHUNKED_ENCODING": "{host} broke the page off in the middle.",
    "ERR_CONTENT_LENGTH_MISMATCH": "{host} broke the page off in the middle.",
    "ERR_HTTP_RESPONSE_CODE_FAILURE": "{host} answered with an error status and an empty page.",
    "ERR_ABORTED": "The address gave no page to show (no content, or a file to keep).",
}


class ContextLost(Exception):
    """The page went on to another document while its reader waited."""


def browser_errors() -> tuple[type[Exception], ...]:
    """Return what calls of the browser raise, for an `except`: Playwright's and TimeoutError."""
    # Kept out of start-up; where something is caught, the browser runs and it is loaded already.
    from playwright.async_api import Error

    return (Error, TimeoutError)


def failure_of(told: str, url: str) -> ToolFailed:
    """Return the failure that the browser's words about a navigation to `url` mean."""
    net_error = _NET_ERROR.search(told)
    if net_error:
        return network_failure(net_error[1], url)
    if _GONE.search(told):
        return browser_lost()
    if _INVALID_URL.search(told):
        return InvalidTarget("The browser cannot read this address.", details={"url": url})
    logger.warning("unknown browser error: %s", _QUOTED.sub('"…"', told.partition("\n")[0]))
    return NavigationFailed("The browser could not open the page.", details={"url": url})


def is_context_lost(error: BaseException) -> bool:
    """Say whether a call failed because the page went on to another document meanwhile."""
    return bool(_CONTEXT_GONE.search(str(error))) or is_of_another_document(error)


def is_of_another_document(error: BaseException) -> bool:
    """Say whether a call was made on what belongs to a document that is gone: it did nothing."""
    return bool(_OTHER_DOCUMENT.search(str(error)))


def browser_lost() -> PageCrashed:
    """Return the failure of a page, browser or driver that died."""
    return PageCrashed("The page, or the browser that held it, died.")


def no_page_open() -> PageCrashed:
    """Return the failure of a call that needs a page which no call before it opened."""
    return PageCrashed("There is no page to work on: it has to be opened first.")


def download_failure(url: str) -> ToolFailed:
    """Return the failure of an address that gives a file to keep; nothing of it was stored."""
    return ToolFailed(
        "The address gives a file to download, not a page; nothing was stored.",
        details={"reason": "download", "url": url},
    )


def unreadable_document(content_type: str, url: str) -> ToolFailed:
    """Return the failure of a document that has no text (an image, a video, a PDF)."""
    return ToolFailed(
        f"The document is {content_type}, which has no text to read.",
        details={"reason": "unreadable_document", "contentType": content_type, "url": url},
    )


def too_many(what: str, limit: int) -> ToolFailed:
    """Return the failure of a page that floods its reader; `what` is `dialogs` or `popups`."""
    return ToolFailed(
        f"The page opened more than {limit} {what}; it was closed.",
        details={"reason": f"too_many_{what}", "limit": limit},
    )


def network_failure(name: str, url: str, *, at: str | None = None) -> ToolFailed:
    """Return the failure that the browser's error `name` means for a navigation to `url`, which got
    as far as `at`.
    """
    details = {"netError": name, "url": url}
    host = urlsplit(at or url).netloc
    if name in _TIMED_OUT:
        return NavigationTimeout(f"{host} did not answer in time.", details=details)
    if name.startswith(("ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL_")):
        return NavigationFailed(
            f"{host} has no TLS certificate or connection to trust.", details=details
        )
    sentence = _SENTENCES.get(name, "The browser could not open {host}.")
    return NavigationFailed(sentence.format(host=host), details=details)
