"""Messages between this installation's processes over Redis pub/sub that Redis can neither read,
forge, nor repeat.

Each is encrypted and authenticated with the installation's key, for one channel and a short time.
Messages are not stored: a lost one stays lost.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from decisions.foundation.security.keys import seal, unseal

MAX_AGE_S = 30.0  # of a message; the clocks of the machines may differ by as much
# Of the key. Live pages were the first to use it; processes of earlier versions know no other.
_PURPOSE = "live page"
log = logging.getLogger(__name__)


def seal_message(channel: str, message: Mapping[str, Any]) -> bytes:
    """Serialize and encrypt a message for one channel."""
    envelope = {
        "id": secrets.token_hex(8),
        "sentAt": time.time(),
        "message": message,
    }
    return seal(orjson.dumps(envelope), purpose=_PURPOSE, bound_to=channel)


class Inbox:
    """Decrypts the messages that a subscriber receives on a channel, each once.

    A program with access to Redis can send a captured message again, or on another channel: input
    would be applied twice, and pictures of one task shown to the viewers of another.

    Args:
        clock: returns the Unix time in seconds.
    """

    def __init__(self, channel: str, *, clock: Callable[[], float] = time.time) -> None:
        self._channel, self._clock = channel, clock
        self._opened: dict[str, float] = {}  # ids of messages by the time until which they are kept
        self._has_warned = False

    def open(self, sealed: bytes) -> dict[str, Any] | None:
        """Decrypt and parse a message; None if it was not sealed for this channel with this
        installation's key, is older than MAX_AGE_S, or was opened before.
        """
        try:
            envelope = orjson.loads(unseal(sealed, purpose=_PURPOSE, bound_to=self._channel))
        except ValueError:
            return None
        if not self._is_recent(envelope["sentAt"]):
            return None
        self._forget_old()
        if envelope["id"] in self._opened:
            return None
        self._opened[envelope["id"]] = envelope["sentAt"] + MAX_AGE_S
        message: dict[str, Any] = envelope["message"]
        return message

    def _is_recent(self, sent_at: float) -> bool:
        age_s = self._clock() - sent_at
        if abs(age_s) <= MAX_AGE_S:
            return True
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "a message over Redis is dropped: by this machine's clock it was sent %d s ago;"
                " correct the clocks of the machines, or find out what repeats messages in Redis",
                age_s,
            )
        return False

    def _forget_old(self) -> None:
        """Remove the ids of messages that are too old to be opened again, oldest first."""
        now = self._clock()
        while self._opened and (oldest := next(iter(self._opened))):
            if self._opened[oldest] >= now:
                return
            del self._opened[oldest]
