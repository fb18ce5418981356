"""What goes wrong with browser actions, beside runners/errors.py (S1 §4.5 to §5.1).

    ToolFailed
    ├── PluginOffline           no browser of the user's is connected (PLUGIN_OFFLINE)
    ├── PluginAckTimeout        it did not acknowledge the action in time (PLUGIN_TIMEOUT_ACK)
    ├── PluginExecTimeout       it did not carry it out in time (PLUGIN_TIMEOUT_EXEC)
    ├── InvalidTaskTab          the tab is not the task's (INVALID_TASK_TAB)
    ├── TaskTabClosed           the task has no tab, or lost it (TASK_TAB_CLOSED)
    ├── OwnPage                 the page is one of this product's own (INVALID_TARGET)
    ├── CdpUnavailable          neither real input nor what stands in for it could be had
    │   └── CdpLost             it was lost after the input began; details.effect is unknown
    ├── CdpPermissionDenied     the browser lets nobody attach to this tab (CDP_PERMISSION_DENIED)
    ├── PagePrepFailed          neither picture nor text of the page could be had
    ├── ReadabilityTooLarge     the page's text is longer than anybody is given
    └── ArtifactUploadFailed    what the action made could not be kept

An element that is gone, covered or disabled is ELEMENT_NOT_FOUND, a page that does not arrive or
answer NAVIGATION_TIMEOUT, as for every other tool.
"""

from __future__ import annotations

from runners.errors import ToolFailed


class PluginOffline(ToolFailed):
    """No browser of the user's is connected."""

    code = "PLUGIN_OFFLINE"
    retryable = True
    recovery = "Start the browser and connect its extension, then try again."


class PluginAckTimeout(ToolFailed):
    """The browser's extension did not acknowledge the action in time."""

    code = "PLUGIN_TIMEOUT_ACK"
    retryable = True
    recovery = "Try again; look whether the browser hangs or sleeps."


class PluginExecTimeout(ToolFailed):
    """The browser's extension did not carry the action out in time."""

    code = "PLUGIN_TIMEOUT_EXEC"
    retryable = True
    recovery = "Look at the page what came of the action, then go on from there."


class InvalidTaskTab(ToolFailed):
    """The tab is not the task's."""

    code = "INVALID_TASK_TAB"
    recovery = "Use the tabId that the last task_start of this task returned."


class TaskTabClosed(ToolFailed):
    """The task has no tab, or its tab was closed or died."""

    code = "TASK_TAB_CLOSED"
    recovery = "Call task_start again, look at the page anew, and go on from there."


class OwnPage(ToolFailed):
    """The page is one of this product's own, on which no agent acts."""

    code = "INVALID_TARGET"
    recovery = "Choose another page; the product's own pages are for people."


class CdpUnavailable(ToolFailed):
    """Neither real input nor what stands in for it could be had; nothing was done to the page."""

    code = "CDP_UNAVAILABLE"
    retryable = True
    recovery = "Attach to the tab again or start the task anew; look at the page before going on."


class CdpLost(CdpUnavailable):
    """The line to the page was lost after the input began; it is not repeated."""

    retryable = False


class CdpPermissionDenied(ToolFailed):
    """The browser lets nobody attach to this tab."""

    code = "CDP_PERMISSION_DENIED"
    recovery = "Close the developer tools of that tab, or choose another page."


class PagePrepFailed(ToolFailed):
    """Neither a picture nor the text of the page could be had."""

    code = "PAGE_PREP_FAILED"
    retryable = True
    recovery = "Wait until the page has loaded and try again, or open another page."


class ReadabilityTooLarge(ToolFailed):
    """The page's text is longer than anybody is given."""

    code = "READABILITY_TOO_LARGE"
    recovery = "Keep the page's HTML, or a part of it by XPath, and read that in pieces."


class ArtifactUploadFailed(ToolFailed):
    """What the action made could not be kept as an artifact."""

    code = "ARTIFACT_UPLOAD_FAILED"
    retryable = True
    recovery = "Try again; look whether the artifact store has space and answers."
