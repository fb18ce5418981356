"""The recorded reason of a step's failure: which timeout expired, and nothing else."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import pytest

from decisions.foundation.errors import SessionNotFound
from runners.errors import ElementNotFound, NavigationTimeout
from runs.journal.step_records import error_of
from runs.models import Run

RUN = Run(id="run_1", timeout_ms=4000)


def recorded_error(error: Exception, *, remaining_s: float) -> dict[str, Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return dict(error_of(future, RUN, ends_at=time.monotonic() + remaining_s) or {})


def test_a_wait_that_the_runs_deadline_cut_short_is_the_runs_timeout() -> None:
    error = recorded_error(
        NavigationTimeout("It did not come.", details={"url": "u"}), remaining_s=1.99
    )
    assert (error["errorCode"], error["details"], error["retryable"]) == (
        "RUN_TIMEOUT",
        {"url": "u"},
        True,
    )
    assert error["message"] == "The run's timeout of 4000 ms expired first: It did not come."
    assert "timeoutMs" in error["recovery"]


@pytest.mark.parametrize(
    ("error", "remaining_s"), [(NavigationTimeout("late"), 600), (ElementNotFound("none"), 1)]
)
def test_any_other_failure_stays_the_pages_error(error: Any, remaining_s: float) -> None:
    assert recorded_error(error, remaining_s=remaining_s)["errorCode"] == error.code


def test_only_the_run_has_a_recovery_hint() -> None:
    assert "nextActions" in SessionNotFound("gone").as_dict()
    assert "nextActions" not in recorded_error(SessionNotFound("gone"), remaining_s=9)
