"""A person's own browser as the place of one call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PluginBrowser:
    """The paired browser of a call, and what the call is for it.

    Attributes:
        action_id: the idempotency key of the call in the browser.
        is_sent: an earlier worker may have sent the action: only its result is collected.
    """

    client_id: str
    task_id: str
    task_title: str
    action_id: str
    is_sent: bool = False
