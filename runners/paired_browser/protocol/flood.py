"""Limits of what one browser may send, and of connections whose browser is not known yet."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from decisions.audit.anonymous_events import peer_network
from decisions.foundation.security.loopback import is_loopback

PER_SECOND, BURST = 200, 400  # messages of one connection
BYTES_PER_SECOND, BYTES_BURST = 4 * 1024 * 1024, 8 * 1024 * 1024  # of one connection
CONNECTIONS, CONNECTIONS_S = 2, 1.0  # of one browser within a second


class MessageBudget:
    """Two token buckets: BURST messages at once, then PER_SECOND, and the same of their bytes."""

    def __init__(self) -> None:
        self._left, self._bytes, self._at = float(BURST), float(BYTES_BURST), time.monotonic()

    def take(self, size: int) -> bool:
        """Count a message of this size; return False if it is one too many."""
        now = time.monotonic()
        self._left = min(BURST, self._left + (now - self._at) * PER_SECOND)
        self._bytes = min(BYTES_BURST, self._bytes + (now - self._at) * BYTES_PER_SECOND)
        self._at = now
        if self._left < 1 or self._bytes < size:
            return False
        self._left -= 1
        self._bytes -= size
        return True


class RecordBudget:
    """At most PER_MINUTE records of one kind within a minute; the others are counted."""

    PER_MINUTE = 10

    def __init__(self) -> None:
        self._since, self._recorded, self._omitted = time.monotonic(), 0, 0

    def take(self) -> int | None:
        """Return None if a record is one too many, else how many were before it since the last."""
        if time.monotonic() - self._since >= 60:
            self._since, self._recorded = time.monotonic(), 0
        if self._recorded >= self.PER_MINUTE:
            self._omitted += 1
            return None
        self._recorded += 1
        omitted, self._omitted = self._omitted, 0
        return omitted


class ConnectionBudget:
    """How often each browser has connected within the last second, to one process."""

    def __init__(self) -> None:
        self._recent: dict[str, list[float]] = {}

    def take(self, client_id: str) -> bool:
        """Count a connection; return False if it is one too many."""
        since = time.monotonic() - CONNECTIONS_S
        for other in [name for name, times in self._recent.items() if times[-1] <= since]:
            del self._recent[other]
        times = [one for one in self._recent.get(client_id, ()) if one > since]
        self._recent[client_id] = [*times, time.monotonic()]
        return len(times) < CONNECTIONS


class PendingConnections:
    """The open connections of a process whose browser is not known yet.

    Args:
        most: of all addresses.
        per_peer: of one client address (IPv6: one /64 network), except of this machine.
    """

    def __init__(self, most: int, per_peer: int) -> None:
        self._most, self._per_peer = most, per_peer
        self._peers: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How many there are."""
        return self._peers.total()

    @contextmanager
    def count(self, address: str) -> Iterator[bool]:
        """Count a connection for the length of the block; yield False, without counting it, if it
        is one too many.
        """
        peer = peer_network(address)
        is_of_full_peer = self._peers[peer] >= self._per_peer and not is_loopback(address)
        if is_of_full_peer or self.total >= self._most:
            yield False
            return
        self._peers[peer] += 1
        try:
            yield True
        finally:
            self._peers[peer] -= 1
            self._peers += Counter()  # without the addresses that have none
