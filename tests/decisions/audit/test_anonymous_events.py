"""Audit rows of events without a credential: limited by peer and minute; every event is counted."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.audit import anonymous_events
from decisions.audit.anonymous_events import (
    PEERS_PER_MINUTE,
    AnonymousEvents,
    peer_network,
    record_anonymous,
    take_anonymous_totals,
    write_counted_events,
)
from decisions.audit.record import AuditEvent
from decisions.models import AuditEntry

FAILED = AuditEvent("operator.sign_in_failed", "anonymous", "operator", "anonymous", "", "")
REFUSED = AuditEvent("access.refused", "unknown", "route", "/api/v1/runs", "", "")


@pytest.fixture
def minute(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the number of the current minute: `minute(2)`."""
    now = [1]
    monkeypatch.setattr(anonymous_events, "_minute", lambda: now[0])
    return lambda number: now.__setitem__(0, number)


@pytest.mark.django_db
def test_a_flood_from_one_peer_is_two_rows_a_minute(minute: Any) -> None:
    for _ in range(500):
        record_anonymous(FAILED, peer="192.0.2.1")
    assert write_counted_events() == 0  # the minute is not over
    minute(2)
    write_counted_events()
    rows = AuditEntry.objects.order_by("id")
    assert [row.metadata for row in rows] == [
        {"peer": "192.0.2.1", "count": 1},
        {"peer": "192.0.2.1", "count": 499},
    ]
    assert take_anonymous_totals() == {FAILED.action: 500}


@pytest.mark.django_db
def test_a_flood_that_does_not_end_is_written_every_minute(minute: Any) -> None:
    written = []
    for half in range(8):
        minute(1 + half // 2)
        for _ in range(5):  # before each write, also the first in a minute
            record_anonymous(FAILED, peer="192.0.2.1")
        written.append(write_counted_events())
    assert written == [0, 0, 1, 0, 1, 0, 1, 0]
    write_counted_events(unfinished=True)
    rows = AuditEntry.objects.filter(action=FAILED.action)
    assert sum(row.metadata["count"] for row in rows) == 40


@pytest.mark.django_db
def test_a_flood_from_many_peers_is_a_limited_number_of_rows(minute: Any) -> None:
    for number in range(3000):
        record_anonymous(REFUSED, peer=f"192.0.{number // 250}.{number % 250}")
    record_anonymous(FAILED, peer="192.0.2.1")  # an action has its own limit
    minute(2)
    write_counted_events()
    rows = AuditEntry.objects.filter(action=REFUSED.action)
    assert rows.count() == 2 * PEERS_PER_MINUTE + 1
    assert sum(row.metadata["count"] for row in rows) == 3000
    assert AuditEntry.objects.filter(action=FAILED.action).count() == 1


def test_memory_is_limited_however_many_peers_there_are(minute: Any) -> None:
    events = AnonymousEvents()
    for number in range(5000):
        events.add(REFUSED, peer=f"10.{number // 250}.{number % 250}.1")
    assert len(events._counted) <= 1001
    assert sum(row.metadata["count"] for row in events.take_rows(unfinished=True)) == 4995


def test_the_peers_that_are_counted_together_are_in_the_row_of_all_others(minute: Any) -> None:
    events = AnonymousEvents()
    for number in range(3000):  # 5 are written, 1000 counted one by one, 1995 counted together
        events.add(REFUSED, peer="" if number == 9 else f"10.{number // 250}.{number % 250}.1")
    *busiest, others = events.take_rows(unfinished=True)
    assert [row.metadata["peer"] for row in busiest] == [*(f"10.0.{n}.1" for n in range(5, 9)), ""]
    assert {row.metadata["count"] for row in busiest} == {1}
    assert others.metadata == {"count": 2990, "peers": 996}
    assert others.resource_id == ""


def test_a_new_minute_writes_the_first_event_at_once(minute: Any) -> None:
    events = AnonymousEvents()
    assert events.add(FAILED, peer="192.0.2.1") is not None
    assert events.add(FAILED, peer="192.0.2.1") is None
    minute(2)
    assert events.add(FAILED, peer="192.0.2.1") is not None


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:1:aaaa::1", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:bbbb::2", "2001:db8:0:1::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
        ("unix socket", "unix socket"),
    ],
)
def test_an_ipv6_client_is_counted_by_its_network(address: str, network: str) -> None:
    assert peer_network(address) == network
