"""Wake-ups: a burst is sent as one, and no run of it has to wait for a worker's poll."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from decisions.foundation.infra.redis import SharedRedis
from runs.models import Run
from runs.queue import wakeups
from runs.worker.worker import WorkerProcess
from tests.support.runs.waiting import wait_until

Submit = Callable[..., str]
Background = Callable[[Callable[[], object]], object]
QUEUE = wakeups.SHARED_QUEUE
sent: list[str] = []


def record_wakeup(queue: str, run_id: str) -> None:
    """Record a wake-up in place of config.celery, which sends it."""
    sent.append(run_id)


@pytest.fixture(autouse=True)
def broker(settings: Any) -> Iterator[None]:
    wakeups.mark_received()
    settings.CONTINUITY_NOTIFY_WORKERS = f"{__name__}.record_wakeup"
    yield
    sent.clear()
    wakeups.mark_received()


def test_no_second_wakeup_is_sent_while_one_is_in_flight(
    monkeypatch: pytest.MonkeyPatch, submit: Submit
) -> None:
    monkeypatch.setattr(wakeups, "MARK_MS", 60_000)
    first = submit()
    submit()
    assert sent == [first]
    wakeups.mark_received()
    third = submit()
    assert sent == [first, third]


def test_an_undelivered_wakeup_blocks_others_only_for_a_short_time() -> None:
    assert wakeups.send(QUEUE, "run_1")
    wait_until(lambda: wakeups.send(QUEUE, "run_2") and len(sent) == 2)


def test_a_wakeup_on_the_queue_of_a_worker_is_always_sent() -> None:
    for run_id in ("run_1", "run_2"):
        assert wakeups.send(wakeups.worker_queue("w1"), run_id)
    assert wakeups.send(QUEUE, "run_3")
    assert sent == ["run_1", "run_2", "run_3"]


def test_without_redis_no_wakeup_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "_redis", SharedRedis("nothing is sent"))
    with override_settings(REDIS_URL="redis://127.0.0.1:1/0"):
        assert not wakeups.send(QUEUE, "run_1")
        assert not wakeups.send(wakeups.worker_queue("w1"), "run_1")
    assert sent == []


def test_a_busy_worker_sends_a_wakeup_for_the_next_queued_run(
    submit: Submit, worker: WorkerProcess, in_background: Background
) -> None:
    runs = [submit("sleep:600"), submit("sleep:600")]
    in_background(worker.work)
    wait_until(lambda: Run.objects.filter(id=runs[0], status="running").exists())
    wait_until(lambda: runs[1] in sent)
    assert Run.objects.get(id=runs[1]).status == "queued"
    worker.drain()


def test_a_worker_sends_no_wakeup_while_no_slot_is_free(
    submit: Submit, worker: WorkerProcess, in_background: Background
) -> None:
    with override_settings(MAX_CONCURRENT_RUNS=1):
        runs = [submit("sleep:600"), submit("sleep:600")]
        in_background(worker.work)
        wait_until(lambda: Run.objects.filter(id=runs[0], status="running").exists())
        wakeups.mark_received()
        sent.clear()
        time.sleep(0.5)  # several polls
        assert sent == []
        worker.drain()
