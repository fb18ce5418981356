"""Of a burst of doorbells one rings, and nobody waits for the sweeper because of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from decisions.infra.redis import SharedRedis
from runs.models import Run
from runs.queue import outbox, wakeup_dedup
from runs.worker.worker import WorkerProcess
from tests.support.waiting import until

Submit = Callable[..., str]
Background = Callable[[Callable[[], object]], object]
QUEUE = wakeup_dedup.SHARED_QUEUE
rung: list[str] = []


def bell(queue: str, run_id: str) -> None:
    """Ring as config.celery does, at no broker."""
    if wakeup_dedup.should_send(queue):
        rung.append(run_id)


@pytest.fixture(autouse=True)
def broker(settings: Any) -> Iterator[None]:
    wakeup_dedup.mark_received()
    settings.CONTINUITY_NOTIFY_WORKERS = f"{__name__}.bell"
    yield
    rung.clear()
    wakeup_dedup.mark_received()


def test_while_a_bell_is_under_way_no_other_rings(
    monkeypatch: pytest.MonkeyPatch, submit: Submit
) -> None:
    monkeypatch.setattr(wakeup_dedup, "MARK_MS", 60_000)
    first = submit()
    submit()
    assert rung == [first]
    wakeup_dedup.mark_received()
    third = submit()
    assert rung == [first, third]


def test_a_bell_that_nobody_hears_keeps_no_other_from_ringing_for_long() -> None:
    assert wakeup_dedup.should_send(QUEUE)
    until(lambda: wakeup_dedup.should_send(QUEUE))


def test_a_workers_own_bell_always_rings() -> None:
    assert wakeup_dedup.should_send(outbox.worker_queue("w1"))
    assert wakeup_dedup.should_send(outbox.worker_queue("w1"))


def test_without_redis_every_run_rings_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup_dedup, "_redis", SharedRedis("every run rings for itself"))
    with override_settings(REDIS_URL="redis://127.0.0.1:1/0"):
        assert wakeup_dedup.should_send(QUEUE)
        assert wakeup_dedup.should_send(QUEUE)


def test_the_sweeper_rings_whatever_is_under_way(
    monkeypatch: pytest.MonkeyPatch, submit: Submit
) -> None:
    monkeypatch.setattr(wakeup_dedup, "MARK_MS", 60_000)
    runs = [submit(), submit()]
    rung.clear()
    with override_settings(SWEEP_AFTER_S=-1):
        outbox.resend_wakeups()
    assert rung == runs


def test_a_worker_that_is_busy_rings_for_the_next_run_that_waits(
    submit: Submit, place: WorkerProcess, in_background: Background
) -> None:
    runs = [submit("sleep:600"), submit("sleep:600")]
    in_background(place.work)
    until(lambda: Run.objects.filter(id=runs[0], status="running").exists())
    until(lambda: runs[1] in rung)
    assert Run.objects.get(id=runs[1]).status == "queued"
    place.drain()


def test_it_rings_for_nobody_while_no_slot_is_free(
    submit: Submit, place: WorkerProcess, in_background: Background
) -> None:
    with override_settings(MAX_CONCURRENT_RUNS=1):
        runs = [submit("sleep:600"), submit("sleep:600")]
        in_background(place.work)
        until(lambda: Run.objects.filter(id=runs[0], status="running").exists())
        wakeup_dedup.mark_received()
        rung.clear()
        time.sleep(0.5)  # several looks
        assert rung == []
        place.drain()
