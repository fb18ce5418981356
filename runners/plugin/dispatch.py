"""Perform browser actions in a paired browser: send the action, await its acknowledgment and its
result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from runners.plugin.errors import PluginOffline


@dataclass(frozen=True, slots=True)
class PluginAction:
    """One action for a paired browser.

    Attributes:
        action_id: the idempotency key: the browser performs the actions of one id once.
        timeout_ms: the time to execute it, which starts with the acknowledgment.
        upload: {url, method, headers, maxBytes, expiresAt} of the upload for a large result.
        files: {fileName, mediaType, sizeBytes, url} of each file for browser_upload.
    """

    action_id: str
    task_id: str
    client_id: str
    name: str
    params: Mapping[str, Any]
    timeout_ms: int
    upload: Mapping[str, Any] | None = None
    files: Sequence[Mapping[str, Any]] = ()
    task_title: str = ""


@dataclass(frozen=True, slots=True)
class PluginReply:
    """What the browser answered; `error` is {code, message, retryable?, details?}."""

    status: Literal["success", "error", "partial"]
    result: Mapping[str, Any] | None = None
    warnings: Sequence[str] = field(default_factory=tuple)
    missing: Sequence[str] = field(default_factory=tuple)
    error: Mapping[str, Any] | None = None


async def perform_on_client(action: PluginAction) -> PluginReply:
    """Perform an action in a paired browser and return what the browser answered.

    Raises:
        PluginOffline: The browser is not connected.
        PluginAckTimeout: It did not acknowledge the action.
        PluginExecTimeout: It acknowledged the action and sent no result in time.
    """
    raise PluginOffline("This browser is not connected.", details={"clientId": action.client_id})
