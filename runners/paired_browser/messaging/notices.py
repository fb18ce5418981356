"""Send a message to a connected browser from any process. A message to one that is not connected is
lost, which does no harm: at its activation it receives the state of its tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.foundation.infra.redis import SharedRedis
from decisions.foundation.security.sealed_messages import seal_message
from runners.paired_browser.messaging.channel import browser_channel

_redis = SharedRedis("connected browsers are not informed of changes")


def send_to_browser(client_id: str, message: Mapping[str, Any]) -> bool:
    """Send a message to the web process that has a browser's socket; return whether there is one.

    Call it after the transaction that it reports has committed.
    """
    channel = browser_channel(client_id)
    sealed = seal_message(channel, message)
    return bool(_redis.execute(lambda redis: redis.publish(channel, sealed)))


def send_task_status(
    client_id: str,
    task_id: str,
    status: str,
    *,
    title: str = "",
    waits_for: Mapping[str, str] | None = None,
) -> bool:
    """Send a browser the status of a task that works in it, for its overlay; return whether the
    browser is connected.

    Args:
        status: of the task, or `removed` when the task no longer works in this browser.
        waits_for: what it waits for from a person (`waitsFor` of the protocol).
    """
    fields = {"title": title[:200], "waitsFor": waits_for}
    named = {name: value for name, value in fields.items() if value}
    message = {"kind": "task_status", "taskId": task_id, "status": status, **named}
    return send_to_browser(client_id, message)
