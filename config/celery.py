"""The Celery application, which carries wake-ups for workers; the queue of runs is the database."""

from __future__ import annotations

import logging
import os
from queue import Empty
from typing import Any

from celery import Celery
from kombu.transport.redis import Channel
from kombu.transport.virtual.base import Message
from redis import RedisError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
log = logging.getLogger(__name__)


# Do not return unprocessed wake-ups to the broker: workers look for runs without them too, and
# returning them to a broker that is down crashes the worker.
Channel.do_restore = False
_channel: Any = Channel  # kombu's private methods have no types
_read_message = _channel._brpop_read


class _CheckedMessage(Message):
    """A message with all that Celery reads without a check."""

    def __init__(self, payload: Any, channel: Any = None, **kwargs: Any) -> None:
        super().__init__(payload, channel=channel, **kwargs)
        route, headers = self.delivery_info, self.headers
        needed = (route["exchange"], route["routing_key"], headers["task"], headers["id"])
        if not all(isinstance(value, str) for value in (self.delivery_tag, *needed)):
            raise TypeError("the delivery tag, the route, the task or its id is not a string")


def _read_message_or_drop(channel: Any, **options: Any) -> Any:
    """Read a message; drop an item of the queue that is none, which would end the worker.

    Nothing is lost: a message only makes the worker look for runs.
    """
    unacknowledged = set(channel.qos._delivered)
    try:
        return _read_message(channel, **options)
    except (Empty, OSError, RedisError):
        raise
    except Exception as error:  # whatever reading such an item raises
        log.warning("an item of the queue in Redis is not a message and is dropped: %r", error)
        for delivery_tag in set(channel.qos._delivered) - unacknowledged:
            channel.basic_ack(delivery_tag)
        raise Empty from error


_channel.Message = _CheckedMessage
_channel._brpop_read = _read_message_or_drop

app = Celery("continuity")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["runs"])


def notify_workers(queue: str, run_id: str) -> None:
    """Send one wake-up message.

    Raises what the broker's client raises.
    """
    app.send_task("runs.work", kwargs={"run_id": run_id}, queue=queue, retry=False)
