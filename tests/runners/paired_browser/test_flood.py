"""The limits of what one browser may send."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from runners.paired_browser.protocol import flood
from runners.paired_browser.protocol.flood import (
    BYTES_BURST,
    MessageBudget,
    PendingConnections,
    RecordBudget,
)


def test_large_messages_use_up_the_budget_of_bytes_which_grows_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(flood, "time", SimpleNamespace(monotonic=lambda: now))
    budget = MessageBudget()
    assert budget.take(BYTES_BURST)
    assert not budget.take(1024)
    now = 1.0
    assert budget.take(1024)


def test_ten_records_a_minute_are_written_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(flood, "time", SimpleNamespace(monotonic=lambda: now))
    budget = RecordBudget()
    assert [budget.take() for _ in range(13)] == [0] * 10 + [None] * 3
    now = 60.0
    assert [budget.take(), budget.take()] == [3, 0]


def test_connections_without_a_credential_are_limited_by_address_and_in_all() -> None:
    pending = PendingConnections(most=3, per_peer=1)
    with pending.count("192.0.2.1") as first, pending.count("192.0.2.1") as second:
        assert (first, second) == (True, False)
        with pending.count("127.0.0.1") as third, pending.count("127.0.0.1") as fourth:
            assert (third, fourth) == (True, True)
            with pending.count("192.0.2.2") as one_too_many:
                assert not one_too_many
    assert pending.total == 0
