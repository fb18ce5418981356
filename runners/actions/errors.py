"""Failures of browser actions, in addition to those of runners/errors.py (S1 §4.5 to §5.1).

    ToolFailed
    ├── InvalidTaskTab          the tab is not the task's (INVALID_TASK_TAB)
    ├── TaskTabClosed           the task has no tab, or its tab was closed (TASK_TAB_CLOSED)
    ├── OwnPage                 the page is one of this product's own (INVALID_TARGET)
    ├── CdpUnavailable          neither real nor synthetic input was possible (CDP_UNAVAILABLE)
    │   └── CdpLost             the connection broke during the input; details.effect is unknown
    ├── CdpPermissionDenied     the browser does not allow attaching to this tab, or input in its
    │                           page (CDP_PERMISSION_DENIED)
    ├── PagePrepFailed          neither a screenshot nor the text of the page could be read
    ├── ReadabilityTooLarge     the page's text exceeds the limit
    ├── TextNotShown            the text to wait for did not come or go in time (NAVIGATION_TIMEOUT)
    └── ArtifactUploadFailed    the action's output could not be stored

As for every other tool, an element that is gone, covered or disabled is ELEMENT_NOT_FOUND, and a
page that does not load or respond is NAVIGATION_TIMEOUT.
"""

from __future__ import annotations

from runners.errors import ToolFailed


class InvalidTaskTab(ToolFailed):
    """The tab is not the task's."""

    code = "INVALID_TASK_TAB"
    recovery = "Use details.taskTabId, or another tabId of browser_list_tabs."


class TaskTabClosed(ToolFailed):
    """The task has no tab, or its tab was closed or died."""

    code = "TASK_TAB_CLOSED"
    recovery = "Call task_start again, read the page again, and continue from there."


class OwnPage(ToolFailed):
    """The page is one of this product's own, on which agents must not act."""

    code = "INVALID_TARGET"
    recovery = "Choose another page; the product's own pages are for people."


class CdpUnavailable(ToolFailed):
    """Neither real nor synthetic input was possible; the page was not changed."""

    code = "CDP_UNAVAILABLE"
    retryable = True
    recovery = (
        "Attach to the tab again or call task_start again; read the page before you continue."
    )


class CdpLost(CdpUnavailable):
    """The connection to the page broke after the input began; the input is not repeated."""

    retryable = False


class CdpPermissionDenied(ToolFailed):
    """The browser does not allow attaching to this tab, or input in its page."""

    code = "CDP_PERMISSION_DENIED"
    recovery = (
        "Ask the person to reload the page, or to close the developer tools of that tab; or choose "
        "another page."
    )


class PagePrepFailed(ToolFailed):
    """Neither a screenshot nor the text of the page could be read."""

    code = "PAGE_PREP_FAILED"
    retryable = True
    recovery = "Wait until the page has loaded and try again, or open another page."


class ReadabilityTooLarge(ToolFailed):
    """The page's text exceeds the limit."""

    code = "READABILITY_TOO_LARGE"
    recovery = "Save the page's HTML, or a part of it by XPath, and read that in chunks."


class TextNotShown(ToolFailed):
    """The text to wait for did not come or go in time; a retry would wait as long again."""

    code = "NAVIGATION_TIMEOUT"
    recovery = (
        "Look at the page (browser_observe). Waiting longer helps only if the action before had an"
        " effect; else repair that one, or wait for another text."
    )


class ArtifactUploadFailed(ToolFailed):
    """The action's output could not be stored as an artifact."""

    code = "ARTIFACT_UPLOAD_FAILED"
    retryable = True
    recovery = "Try again; check that the artifact store is reachable and has space."
