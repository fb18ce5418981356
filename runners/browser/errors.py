"""Translate errors of the browser into ToolFailed, without file paths and stack traces."""

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
_BROWSER_LOST = re.compile(
    r"Target closed|has been closed|Page crashed|Target crashed|Connection closed|Browser closed"
    r"|Session closed|Frame was detached|browser has disconnected",
    re.IGNORECASE,
)
_INVALID_URL = re.compile(r"invalid URL", re.IGNORECASE)
_CONTEXT_LOST = re.compile(
    r"context was destroyed|Cannot find context|context with specified id|Promise was collected"
    r"|navigated or closed|No frame (for|with) given id|Inspected target",
    re.IGNORECASE,
)
_DOCUMENT_GONE = re.compile(
    r"Cannot find context|Could not find object with given id|Invalid remote object id",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"]*"')  # URLs, which may contain secrets
_TIMED_OUT = frozenset({"ERR_TIMED_OUT", "ERR_CONNECTION_TIMED_OUT"})

_MESSAGES = {
    "ERR_NAME_NOT_RESOLVED": "The host name {host} cannot be resolved.",
    "ERR_CONNECTION_REFUSED": "{host} refused the connection: nothing answers there.",
    "ERR_CONNECTION_RESET": "{host} reset the connection.",
    "ERR_CONNECTION_CLOSED": "{host} closed the connection without an answer.",
    "ERR_EMPTY_RESPONSE": "{host} closed the connection without an answer.",
    "ERR_ADDRESS_UNREACHABLE": "{host} cannot be reached from this machine.",
    "ERR_INTERNET_DISCONNECTED": "This machine has no network connection.",
    "ERR_TOO_MANY_REDIRECTS": "The address redirects without end.",
    "ERR_INVALID_REDIRECT": "The address redirects to something that is not a URL.",
    "ERR_UNSAFE_REDIRECT": "The address redirects to a URL that may not be opened.",
    "ERR_UNSAFE_PORT": "The browser does not open that port.",
    "ERR_INVALID_HTTP_RESPONSE": "{host} answered with something that is not HTTP.",
    "ERR_CONTENT_DECODING_FAILED": "{host} sent a body that does not match its Content-Encoding.",
    "ERR_INCOMPLETE_CHUNKED_ENCODING": "{host} closed the connection in the middle of the page.",
    "ERR_CONTENT_LENGTH_MISMATCH": "{host} closed the connection in the middle of the page.",
    "ERR_HTTP_RESPONSE_CODE_FAILURE": "{host} answered with an error status and an empty page.",
    "ERR_ABORTED": "The address did not return a page (no content, or a file to download).",
}
_CUT = "The address was reached. Try again; if it fails again, the server is at fault."
_RECOVERY = {
    "ERR_NAME_NOT_RESOLVED": "Correct the host name.",
    "ERR_TOO_MANY_REDIRECTS": (
        "The address was reached. Sites also redirect without end if cookies are missing: log in"
        " first (login_keep_session), or open the address that it should lead to."
    ),
    "ERR_CONNECTION_RESET": _CUT,
    "ERR_CONNECTION_CLOSED": _CUT,
    "ERR_EMPTY_RESPONSE": _CUT,
    "ERR_INCOMPLETE_CHUNKED_ENCODING": _CUT,
    "ERR_CONTENT_LENGTH_MISMATCH": _CUT,
    "ERR_CONTENT_DECODING_FAILED": _CUT,
}


class ContextLost(Exception):
    """The page navigated to another document while a call to it was in flight."""


def browser_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of browser calls, for an `except`: Playwright's and TimeoutError."""
    # Imported here to keep Playwright out of start-up; once a browser runs, it is loaded already.
    from playwright.async_api import Error

    return (Error, TimeoutError)


def navigation_failure(message: str, url: str) -> ToolFailed:
    """Return the failure that the browser's error message means for a navigation to `url`."""
    net_error = _NET_ERROR.search(message)
    if net_error:
        return network_failure(net_error[1], url)
    if _BROWSER_LOST.search(message):
        return browser_lost()
    if _INVALID_URL.search(message):
        return InvalidTarget("The browser cannot parse this address.", details={"url": url})
    logger.warning("unknown browser error: %s", _QUOTED.sub('"…"', message.partition("\n")[0]))
    return NavigationFailed("The browser could not open the page.", details={"url": url})


def is_context_lost(error: BaseException) -> bool:
    """Return whether a call failed because the page navigated to another document meanwhile."""
    return bool(_CONTEXT_LOST.search(str(error))) or is_document_gone(error)


def is_document_gone(error: BaseException) -> bool:
    """Return whether a call used an object of a document that is gone, so that it had no effect."""
    return bool(_DOCUMENT_GONE.search(str(error)))


def browser_lost() -> PageCrashed:
    """Return the failure for a page, browser or driver that died."""
    return PageCrashed("The page, or its browser, died.")


def no_answer(url: str, seconds: float, *, what: str = "The server") -> NavigationTimeout:
    """Return the failure for a navigation that no server answered."""
    return NavigationTimeout(
        f"{what} did not answer within {max(1, round(seconds))} s.",
        details={"url": url, "reason": "no_answer"},
    )


def unfinished_page(url: str) -> NavigationTimeout:
    """Return the failure for a page of which only a part arrived in time."""
    return NavigationTimeout(
        "The server answered, but the page did not finish loading in time.",
        details={"url": url, "reason": "unfinished"},
    )


def no_page_open() -> PageCrashed:
    """Return the failure for a call that needs an open page when no earlier call opened one."""
    return PageCrashed("No page is open; open one first.")


def download_failure(url: str) -> ToolFailed:
    """Return the failure for a URL that starts a download; nothing was stored."""
    return ToolFailed(
        "The address returned a file to download instead of a page; nothing was stored.",
        details={"reason": "download", "url": url},
        recovery="Open it with task_start, which stores the file and returns its text.",
    )


def unreadable_document(content_type: str, url: str) -> ToolFailed:
    """Return the failure for a document without text (an image, a video, a PDF)."""
    return ToolFailed(
        f"The document is {content_type}, which has no text to read.",
        details={"reason": "unreadable_document", "contentType": content_type, "url": url},
    )


def flood_failure(what: str, limit: int) -> ToolFailed:
    """Return the failure for a page that opens too many; `what` is `dialogs` or `popups`."""
    return ToolFailed(
        f"The page opened more than {limit} {what}; it was closed.",
        details={"reason": f"too_many_{what}", "limit": limit},
    )


def network_failure(name: str, url: str, *, at: str | None = None) -> ToolFailed:
    """Return the failure that the browser's error `name` means for a navigation to `url`.

    `at` is the URL that failed, if a redirect led to it.
    """
    details = {"netError": name, "url": url}
    host = urlsplit(at or url).netloc
    if name in _TIMED_OUT:
        return NavigationTimeout(f"{host} did not answer in time.", details=details)
    if name.startswith(("ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL_")):
        return NavigationFailed(
            f"{host} has no trusted TLS certificate or connection.", details=details
        )
    message = _MESSAGES.get(name, "The browser could not open {host}.")
    return NavigationFailed(
        message.format(host=host), details=details, recovery=_RECOVERY.get(name)
    )
