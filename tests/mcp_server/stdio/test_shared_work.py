"""Shared background work: concurrent callers share one execution; a success can be cached."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from decisions.foundation.errors import NotReady
from mcp_server.stdio.local_stack import _not_ready, _SharedWork


class Work:
    """Counts its calls, fails a given number of times, and ends only when the test allows it."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.calls = 0
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self) -> int:
        self.calls += 1
        self.may_end.wait(10)
        if self.calls <= self.failures:
            raise OSError("the disk is full")
        return self.calls


def result_of(future: Future[int]) -> int:
    return future.result(10)


def test_a_cached_success_is_not_repeated() -> None:
    shared = _SharedWork(Work(), is_cached=True)
    assert [result_of(shared.result()), result_of(shared.result())] == [1, 1]


def test_uncached_work_is_repeated_for_each_later_caller() -> None:
    shared = _SharedWork(Work(), is_cached=False)
    assert [result_of(shared.result()), result_of(shared.result())] == [1, 2]


def test_a_failure_is_raised_and_the_next_call_retries() -> None:
    shared = _SharedWork(Work(failures=1), is_cached=True)
    with pytest.raises(OSError, match="full"):
        result_of(shared.result())
    assert result_of(shared.result()) == 2


def test_concurrent_callers_share_one_outcome() -> None:
    work = Work()
    work.may_end.clear()
    shared = _SharedWork(work, is_cached=False)
    futures = [shared.result() for _ in range(5)]
    work.may_end.set()
    assert [result_of(future) for future in futures] == [1] * 5


def test_a_caller_that_stops_waiting_does_not_cancel_the_work() -> None:
    work = Work()
    work.may_end.clear()
    shared = _SharedWork(work, is_cached=True)

    async def time_out_and_retry() -> int:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.wrap_future(shared.result())
        work.may_end.set()
        return await asyncio.wrap_future(shared.result())

    assert asyncio.run(time_out_and_retry()) == 1


def test_the_error_message_is_one_line_without_a_traceback() -> None:
    error = _not_ready("Redis was not found. Install it.\nlog line\nlog line")
    assert isinstance(error, NotReady)
    assert error.message == "Redis was not found. Install it."
    assert "up.log" in _not_ready('Traceback (most recent call last):\n  File "/x"').message
