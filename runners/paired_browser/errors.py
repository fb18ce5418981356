"""Failures of calls to a paired browser (S1 §5.1), and of calls about one."""

from __future__ import annotations

from decisions.foundation.errors import NotFound
from runners.errors import ToolFailed


class BrowserOffline(ToolFailed):
    """The browser is not connected; nothing was sent to it."""

    code = "PLUGIN_OFFLINE"
    retryable = True
    recovery = (
        "Start the browser and check that its Continuity extension is connected, or pair a browser."
    )


class BrowserAckTimeout(ToolFailed):
    """The browser did not acknowledge the action in time; details.effect says what is known."""

    code = "PLUGIN_TIMEOUT_ACK"
    retryable = True
    recovery = "Check that the browser responds and its Continuity extension is connected."


class BrowserExecTimeout(ToolFailed):
    """The browser acknowledged the action, and its result did not arrive in time."""

    code = "PLUGIN_TIMEOUT_EXEC"
    retryable = True
    recovery = "Look at the page first: the action may have had its effect."


class PairedBrowserNotFound(NotFound):
    """No paired browser with this id belongs to the caller."""

    code = "PLUGIN_CLIENT_NOT_FOUND"
    recovery = "List your paired browsers (GET /plugin/clients), or pair one."
