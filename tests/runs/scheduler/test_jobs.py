"""The scheduler runs every job, also after one that cannot reach the database."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from runs.scheduler.jobs import Scheduler

pytestmark = pytest.mark.django_db(transaction=True)  # on PostgreSQL one scheduler takes a lock


def test_a_job_that_fails_stops_neither_the_others_nor_the_scheduler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler, executed = Scheduler(), list[str]()

    def fail() -> None:
        executed.append("fail")
        raise OperationalError("the database is away")

    def stop() -> None:
        executed.append("stop")
        scheduler.stopping.set()

    monkeypatch.setattr(scheduler, "_jobs", lambda: [(1.0, fail), (1.0, stop)])
    scheduler.run()
    assert executed == ["fail", "stop"]
