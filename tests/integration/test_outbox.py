"""A doorbell rings until somebody claims its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from runs.models import OutboxEntry, Slot
from runs.queue import outbox
from tests.integration.racing import at_once
from tests.integration.workers import must_take

Submit = Callable[..., str]
rung: list[tuple[str, str]] = []
down: list[bool] = []


def bell(queue: str, run_id: str) -> None:
    """Stand in for the broker."""
    if down:
        raise ConnectionRefusedError
    rung.append((queue, run_id))


@pytest.fixture(autouse=True)
def broker(settings: Any) -> Iterator[None]:
    settings.CONTINUITY_NOTIFY_WORKERS = "tests.integration.test_outbox.bell"
    yield
    rung.clear()
    down.clear()


def age(seconds: float) -> None:
    OutboxEntry.objects.update(rung_at=datetime.now(UTC) - timedelta(seconds=seconds))


def test_a_fresh_bell_is_not_rung_again(submit: Submit) -> None:
    submit()
    assert outbox.resend_wakeups() == 0


def test_an_unclaimed_run_is_rung_for_again_and_again_on_the_shared_queue(submit: Submit) -> None:
    run_id = submit()
    OutboxEntry.objects.update(queue="runs.w_dead")
    for _ in range(2):
        rung.clear()
        age(11)
        assert outbox.resend_wakeups() == 1
        assert rung == [("runs", run_id)]
        assert outbox.resend_wakeups() == 0


def test_a_claimed_run_is_not_rung_for(submit: Submit) -> None:
    submit()
    age(11)
    must_take("w1")
    assert outbox.resend_wakeups() == 0


def test_a_clock_that_jumped_back_silences_no_bell(submit: Submit) -> None:
    submit()
    age(-600)
    assert outbox.resend_wakeups() == 1


def test_a_broker_that_is_down_is_asked_again_at_the_next_sweep(submit: Submit) -> None:
    down.append(True)
    submit()
    submit()
    age(11)
    assert outbox.resend_wakeups() == 0
    down.clear()
    assert outbox.resend_wakeups() == 2


def test_no_more_bells_than_free_slots(submit: Submit) -> None:
    for _ in range(9):
        submit()
    age(11)
    assert outbox.resend_wakeups() == 5
    Slot.objects.filter(number__gt=0).update(run_id=None)
    assert outbox.resend_wakeups() == 4


def test_while_every_slot_is_taken_no_bell_is_wasted(submit: Submit) -> None:
    submit()
    age(11)
    for slot in Slot.objects.all():
        Slot.objects.filter(number=slot.number).update(run_id=f"r{slot.number}")
    assert outbox.resend_wakeups() == 0


def test_two_sweepers_at_once_do_no_harm(submit: Submit) -> None:
    ids = {submit() for _ in range(4)}
    age(11)
    at_once([outbox.resend_wakeups] * 3)
    assert {run_id for _, run_id in rung} == ids
    assert OutboxEntry.objects.count() == 4


def test_putting_a_bell_up_twice_keeps_one(submit: Submit) -> None:
    submit()
    held = must_take("w1")
    at_once([partial(outbox.put, held.run)] * 4)
    assert OutboxEntry.objects.count() == 1
