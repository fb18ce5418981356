"""Audit events that callers without a valid credential cause, such as failed sign-ins: the rows are
limited, and every event is counted.

The first event of an action and peer in a minute is written at once, for PEERS_PER_MINUTE peers.
The others are counted in memory. When the minute of the first counted event is over, the web
process writes their numbers in at most PEERS_PER_MINUTE + 1 rows (`write_counted_events`), so that
a flood of calls causes neither many rows nor a write per call.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from decisions.audit.record import AuditEvent, record, record_all

PEERS_PER_MINUTE = 5  # peers of one action that get rows of their own, in each process
_COUNTED_PEERS = 1000  # that are counted one by one; further ones are counted together
_OTHERS = None  # in place of their address
_IPV6_SITE_BITS = 64  # one client chooses any address of its /64


def peer_network(address: str) -> str:
    """Return the name under which a client address is counted: for IPv6 its /64 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_SITE_BITS), strict=False))


@dataclass
class _Counted:
    event: AuditEvent
    count: int = 0


class AnonymousEvents:
    """Counts the events of one process and decides which get a row."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute = 0
        self._written: defaultdict[str, set[str]] = defaultdict(set)
        self._counted: dict[tuple[str, str | None], _Counted] = {}
        self._counted_since = 0  # the minute of the first counted event
        self._totals: Counter[str] = Counter()

    def add(self, event: AuditEvent, *, peer: str) -> AuditEvent | None:
        """Count an event; return the row to write now, or None if it is counted only."""
        network = peer_network(peer)
        with self._lock:
            self._totals[event.action] += 1
            if self._minute != (minute := _minute()):
                self._minute = minute
                self._written.clear()
            written = self._written[event.action]
            if network not in written and len(written) < PEERS_PER_MINUTE:
                written.add(network)
                return replace(event, metadata={**event.metadata, "peer": peer, "count": 1})
            if not self._counted:
                self._counted_since = minute
            key: tuple[str, str | None] = (event.action, network)
            if key not in self._counted and len(self._counted) >= _COUNTED_PEERS:
                key = (event.action, _OTHERS)
            event = replace(event, metadata={**event.metadata, "peer": peer})
            self._counted.setdefault(key, _Counted(event)).count += 1
            return None

    def take_rows(self, *, unfinished: bool = False) -> list[AuditEvent]:
        """Return the rows of the counted events and forget them; none before the minute is over.

        Args:
            unfinished: return them also within the minute, because the process ends.
        """
        with self._lock:
            if not self._counted or (self._counted_since == _minute() and not unfinished):
                return []
            counted, self._counted = self._counted, {}
        by_action: defaultdict[str, dict[str | None, _Counted]] = defaultdict(dict)
        for (action, network), one in counted.items():
            by_action[action][network] = one
        return [row for found in by_action.values() for row in _rows(found)]

    def take_totals(self) -> dict[str, int]:
        """Return how many events there were since the last call, by action, for the metrics."""
        with self._lock:
            totals, self._totals = self._totals, Counter()
        return dict(totals)


def _minute() -> int:
    return int(time.monotonic() // 60)


def _rows(found: dict[str | None, _Counted]) -> Iterator[AuditEvent]:
    """Yield a row for each of the peers with the most events, and one row for all others."""
    counted_together = found.pop(_OTHERS, None)
    peers = sorted(found.values(), key=lambda one: one.count, reverse=True)
    for one in peers[:PEERS_PER_MINUTE]:
        yield replace(one.event, metadata={**one.event.metadata, "count": one.count})
    others = peers[PEERS_PER_MINUTE:]
    if counted_together:
        others.append(counted_together)
    if others:
        total = sum(one.count for one in others)
        metadata = {"count": total, "peers": len(others)}
        yield replace(others[0].event, resource_id="", metadata=metadata)


_events = AnonymousEvents()


def record_anonymous(event: AuditEvent, *, peer: str) -> None:
    """Record an event of a caller without a valid credential, as a row or as part of a later one.

    The row's metadata gets `peer` and `count`, the number of events it stands for.
    """
    row = _events.add(event, peer=peer)
    if row is not None:
        record(row)


def write_counted_events(*, unfinished: bool = False) -> int:
    """Write the rows of the counted events; return how many. Commits.

    Args:
        unfinished: also those of the current minute, because the process ends.
    """
    rows = _events.take_rows(unfinished=unfinished)
    record_all(rows)
    return len(rows)


def take_anonymous_totals() -> dict[str, int]:
    """Return how many anonymous events there were since the last call, by action."""
    return _events.take_totals()
