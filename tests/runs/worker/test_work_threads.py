"""Wake-ups start threads up to a limit; none is lost while all of them work."""

from __future__ import annotations

import threading

import pytest

from runs.worker import work_threads
from runs.worker.work_threads import WorkThreads
from tests.support.runs.waiting import wait_until


def test_each_wakeup_starts_a_thread_up_to_the_limit_and_one_more_look_afterwards() -> None:
    began, gate = threading.Semaphore(0), threading.Event()
    looks: list[str] = []

    def work() -> None:
        looks.append(threading.current_thread().name)
        began.release()
        gate.wait(10)

    threads = WorkThreads(2, work)
    for _ in range(5):
        threads.wake()
    assert began.acquire(timeout=10)
    assert began.acquire(timeout=10)
    assert len(looks) == 2
    gate.set()
    wait_until(lambda: len(looks) == 3)  # what became claimable meanwhile is looked for
    threads.close()
    threads.wake()
    assert len(looks) == 3


def test_an_idle_thread_takes_the_next_wakeup_and_ends_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work_threads, "IDLE_S", 0.2)
    worked_by: list[threading.Thread] = []
    threads = WorkThreads(2, lambda: worked_by.append(threading.current_thread()))
    threads.wake()
    wait_until(lambda: threads._idle == 1)
    threads.wake()
    wait_until(lambda: len(worked_by) == 2)
    assert worked_by[0] is worked_by[1]
    wait_until(lambda: not worked_by[0].is_alive())
