"""The scheduler runs every job, also after one that fails."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from runs.scheduler.jobs import Scheduler

pytestmark = pytest.mark.django_db(transaction=True)  # on PostgreSQL one scheduler takes a lock


@pytest.mark.parametrize(
    "error", [OperationalError("the database is away"), ValueError("a row cannot be read")]
)
def test_a_job_that_fails_stops_neither_the_others_nor_the_scheduler(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler, executed = Scheduler(), list[str]()

    def fail() -> None:
        executed.append("fail")
        raise error

    def stop() -> None:
        executed.append("stop")
        scheduler.stopping.set()

    monkeypatch.setattr(scheduler, "_jobs", lambda: [(1.0, fail), (1.0, stop)])
    scheduler.run()
    assert executed == ["fail", "stop"]
    assert "the job fail failed and is tried again later" in caplog.text
