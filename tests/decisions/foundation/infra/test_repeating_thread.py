"""RepeatingThread: what it calls, and what it does when a call fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError

from decisions.foundation.infra import threads
from decisions.foundation.infra.threads import RepeatingThread

LOG = threads.log.name


def _repeat(call: Callable[[], object], calls: int, **given: object) -> None:
    """Repeat a call that many times, then stop."""
    made, enough = 0, threading.Event()

    def counted() -> None:
        nonlocal made
        made += 1
        if made == calls:
            enough.set()
        call()

    thread = RepeatingThread(counted, name="checks", every_s=0.01, **given)  # type: ignore[arg-type]
    thread.start()
    assert enough.wait(5)
    thread.stop(5)


def test_the_last_call_follows_the_stop_and_nothing_follows_it() -> None:
    made: list[str] = []
    _repeat(lambda: made.append("call"), 3, last=lambda: made.append("last"))
    assert made[:3] == ["call"] * 3
    assert made.index("last") == len(made) - 1


def test_a_stop_wakes_a_long_pause() -> None:
    made: list[str] = []
    thread = RepeatingThread(
        lambda: made.append("call"), name="slow", every_s=60, last=lambda: made.append("last")
    )
    thread.start()
    thread.stop(5)
    assert made == ["last"]


def test_a_stop_before_the_start_does_nothing() -> None:
    RepeatingThread(lambda: None, name="unused", every_s=60).stop(5)


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = [OperationalError("gone"), OSError("full"), None, None]

    def fail() -> None:
        failure = failures.pop(0) if failures else None
        if failure is not None:
            raise failure

    with caplog.at_level(logging.WARNING, LOG):
        _repeat(fail, 4)
    assert [record.getMessage() for record in caplog.records] == [
        "the thread checks has an outage and retries: gone",
        "the thread checks works again",
    ]


def test_a_defect_is_logged_and_the_next_call_follows(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "AFTER_DEFECT_S", 0.0)
    failures = [ValueError("a defect")]

    def fail() -> None:
        if failures:
            raise failures.pop()

    with caplog.at_level(logging.ERROR, LOG):
        _repeat(fail, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "the thread checks failed and goes on"
    ]
