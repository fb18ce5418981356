"""The outbox resends the wake-up message of a run until a worker claims the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from runs.models import OutboxEntry, Slot
from runs.queue import outbox
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import must_take

Submit = Callable[..., str]
sent: list[tuple[str, str]] = []
broker_down: list[bool] = []


def record_wakeup(queue: str, run_id: str) -> None:
    """Stand in for the broker: record the wake-up, or fail while it is down."""
    if broker_down:
        raise ConnectionRefusedError
    sent.append((queue, run_id))


@pytest.fixture(autouse=True)
def broker(settings: Any) -> Iterator[None]:
    settings.CONTINUITY_NOTIFY_WORKERS = "tests.runs.queue.test_outbox.record_wakeup"
    yield
    sent.clear()
    broker_down.clear()


def age(seconds: float) -> None:
    OutboxEntry.objects.update(rung_at=datetime.now(UTC) - timedelta(seconds=seconds))


def test_a_recent_wakeup_is_not_resent(submit: Submit) -> None:
    submit()
    assert outbox.resend_wakeups() == 0


def test_the_wakeup_of_an_unclaimed_run_is_resent_on_the_shared_queue(submit: Submit) -> None:
    run_id = submit()
    OutboxEntry.objects.update(queue="runs.w_dead")
    for _ in range(2):
        sent.clear()
        age(11)
        assert outbox.resend_wakeups() == 1
        assert sent == [("runs", run_id)]
        assert outbox.resend_wakeups() == 0


def test_no_wakeup_is_resent_for_a_claimed_run(submit: Submit) -> None:
    submit()
    age(11)
    must_take("w1")
    assert outbox.resend_wakeups() == 0


def test_a_clock_that_jumped_back_suppresses_no_wakeup(submit: Submit) -> None:
    submit()
    age(-600)
    assert outbox.resend_wakeups() == 1


def test_wakeups_are_resent_at_the_next_sweep_when_the_broker_is_down(submit: Submit) -> None:
    broker_down.append(True)
    submit()
    submit()
    age(11)
    assert outbox.resend_wakeups() == 0
    broker_down.clear()
    assert outbox.resend_wakeups() == 2


def test_no_more_wakeups_are_resent_than_slots_are_free(submit: Submit) -> None:
    for _ in range(9):
        submit()
    age(11)
    assert outbox.resend_wakeups() == 5
    Slot.objects.filter(number__gt=0).update(run_id=None)
    assert outbox.resend_wakeups() == 4


def test_no_wakeup_is_resent_while_every_slot_is_taken(submit: Submit) -> None:
    submit()
    age(11)
    for slot in Slot.objects.all():
        Slot.objects.filter(number=slot.number).update(run_id=f"r{slot.number}")
    assert outbox.resend_wakeups() == 0


def test_concurrent_sweeps_resend_a_wakeup_for_every_run(submit: Submit) -> None:
    ids = {submit() for _ in range(4)}
    age(11)
    at_once([outbox.resend_wakeups] * 3)
    assert {run_id for _, run_id in sent} == ids
    assert OutboxEntry.objects.count() == 4


def test_concurrent_puts_keep_one_outbox_entry(submit: Submit) -> None:
    submit()
    lease = must_take("w1")
    at_once([partial(outbox.put, lease.run)] * 4)
    assert OutboxEntry.objects.count() == 1
