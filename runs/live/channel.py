"""The channels of live pages between the web processes and the workers, over Redis pub/sub.

Every worker with an open page subscribes to WORKERS_CHANNEL; every viewer of a task subscribes to
that task's channel. All messages are sealed (`decisions.foundation.security.sealed_messages`), so
Redis sees neither pictures nor typed text, and can neither forge nor repeat input.
"""

from __future__ import annotations

from django.conf import settings

WORKERS_CHANNEL = f"{settings.REDIS_PREFIX}live"
ANNOUNCE_S = 2.0  # interval at which a viewer announces itself
VIEWER_TIMEOUT_S = 7.0  # after this long without an announcement there is no viewer
RETRY_S = 1.0  # pause after a failure


def viewers_channel(task_id: str) -> str:
    """Return the name of the channel of a task's viewers."""
    return f"{WORKERS_CHANNEL}:{task_id}"
