"""Subscribers of an event log, compared with an oracle: with lost, forged, slow or late messages,
each subscriber reads the log once and in order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.streaming import subscriber
from runs.streaming.event_log import EVENTS_AT_ONCE, EventLog
from runs.streaming.subscriber import Batch, Event, Subscriber, frames_of


def event(seq: int, type_: str = "tool.update") -> dict[str, Any]:
    return {"seq": seq, "type": type_, "at": 0, "data": {}}


def events(first: int, last: int) -> list[dict[str, Any]]:
    return [event(seq) for seq in range(first, last + 1)]


class Rows:
    """The oracle: the number of events of the run, and the readers of its log."""

    def __init__(self) -> None:
        self.count = 0
        self.unread = False
        self.log = EventLog("run_x", self._note)
        self.readers: list[Reader] = []

    def _note(self, log: EventLog) -> None:
        self.unread = True

    def read(self) -> None:
        """Read new rows as the hub does after a notification."""
        if self.unread:
            self.unread = False
            after, upto = self.log.next_span()
            self.log.distribute(events(after + 1, min(upto, self.count)))


class Reader:
    """A subscriber that records the events it received."""

    def __init__(self, rows: Rows, after: int, page: int) -> None:
        self.rows, self.after, self.page, self.seqs = rows, after, page, list[int]()
        self.subscriber = Subscriber(rows.log.can_join_at)
        rows.log.subscribers.add(self.subscriber)

    def step(self) -> None:
        """Read a page of rows if the subscriber is behind, else take its queued events."""
        if self.subscriber.is_behind:
            last = min(self.rows.count, self.after + self.page)
            is_full = last - self.after == self.page
            self._take(events(self.after + 1, last))
            if not is_full:
                self.subscriber.mark_read(self.after, log_seq=self.rows.count)
        else:
            for batch in self.subscriber.take():
                self._take(batch.events)

    def _take(self, received: Sequence[Event]) -> None:
        self.seqs += [event["seq"] for event in received]
        self.after = max([self.after, *self.seqs])


def perform(rows: Rows, operation: str, number: int) -> None:
    """Perform one operation of a sequence."""
    if operation == "commit":
        rows.count += number % 7 + 1
    elif operation == "notify":
        rows.log.advance_to(rows.count)
    elif operation == "notify late":
        rows.log.advance_to(max(0, rows.count - number % 5))
    elif operation == "notify wrongly":
        rows.log.advance_to(rows.count + number)
    elif operation == "read":
        rows.read()
    elif operation == "join":
        rows.readers.append(Reader(rows, number % (rows.count + 1), number % 4 + 1))
    elif rows.readers:
        reader = rows.readers[number % len(rows.readers)]
        reader.step() if operation == "step" else reader.subscriber.fall_behind()


OPERATIONS = [
    "commit",
    "notify",
    "notify late",
    "notify wrongly",
    "read",
    "join",
    "step",
    "step",
    "lose",
]
operation_lists = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 1000)), max_size=120
)


def perform_all(operations: list[tuple[str, int]]) -> None:
    """Perform a sequence of operations, let every reader catch up, and compare the results."""
    rows = Rows()
    started_after: dict[Reader, int] = {}
    for operation, number in operations:
        perform(rows, operation, number)
        started_after |= {
            event: event.after for event in rows.readers if event not in started_after
        }
    for _ in range(rows.count * 2 + 10):
        rows.log.advance_to(rows.count)  # as the query every two seconds does
        rows.read()
        for reader in rows.readers:
            reader.step()
    for reader in rows.readers:
        assert reader.seqs == list(range(started_after[reader] + 1, rows.count + 1))


@given(operation_lists)
def test_every_reader_reads_the_log_once_and_in_order(operations: list[tuple[str, int]]) -> None:
    perform_all(operations)


@pytest.mark.parametrize("seed", range(20))
def test_readers_with_overflowing_queues_also_read_once_and_in_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber, "QUEUE_EVENTS", 3)
    rng = random.Random(seed)
    perform_all([(rng.choice(OPERATIONS), rng.randrange(1000)) for _ in range(400)])


def test_a_slow_subscriber_queues_a_bounded_number_of_events() -> None:
    log = EventLog("run_x", lambda _: None)
    slow = Subscriber(log.can_join_at)
    slow.mark_read(0, log_seq=0)
    for first in range(1, 5000, 100):
        slow.offer(Batch(events(first, first + 99)))
    queued = slow.take()
    assert sum(len(batch.events) for batch in queued) <= subscriber.QUEUE_EVENTS
    assert queued[0].first == 1
    assert slow.is_behind


def test_a_gap_makes_the_subscriber_read_the_rows() -> None:
    log = EventLog("run_x", lambda _: None)
    reader = Subscriber(log.can_join_at)
    reader.mark_read(3, log_seq=3)
    reader.offer(Batch(events(6, 7)))
    assert (reader.is_behind, reader.take()) == (True, [])


def test_a_subscriber_at_a_future_seq_does_not_affect_the_others() -> None:
    rows = Rows()
    rows.count = 3
    future = Subscriber(rows.log.can_join_at)
    rows.log.subscribers.add(future)
    future.mark_read(10**9, log_seq=3)
    reader = Reader(rows, 0, 10)
    reader.step()
    rows.count = 5
    rows.log.advance_to(5)
    rows.read()
    reader.step()
    assert reader.seqs == [1, 2, 3, 4, 5]
    assert not future.is_ready
    rows.log.distribute([event(6, "run.failed")])
    assert future.is_behind  # it reads the rows and learns that the run has ended


def test_a_message_with_a_wrong_seq_is_corrected_by_the_rows() -> None:
    rows = Rows()
    rows.count = 2
    Reader(rows, 2, 10).step()
    rows.log.advance_to(10**6)
    rows.read()
    assert (rows.log.known_seq, rows.unread) == (2, False)


def test_a_long_log_is_read_in_batches() -> None:
    rows = Rows()
    reader = Reader(rows, 0, 10)
    reader.step()
    rows.count = 3 * EVENTS_AT_ONCE
    rows.log.advance_to(rows.count)
    for _ in range(3):
        assert rows.unread
        rows.read()
        reader.step()
    assert (reader.seqs, rows.unread) == (list(range(1, rows.count + 1)), False)


def test_frames_are_server_sent_events() -> None:
    assert frames_of([event(4)]) == (
        b'id: 4\ndata: {"seq":4,"type":"tool.update","at":0,"data":{}}\n\n'
    )
    assert frames_of([]) == b""
