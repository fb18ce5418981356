"""Work in the background that many wait for: done once, kept when it went well, else done anew."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from decisions.errors import NotReady
from mcp_server.stdio.local_stack import _not_ready, _SharedWork


class Work:
    """Counts its calls; fails as often as it is told, and waits until it may end."""

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


def outcome(future: Future[int]) -> int:
    return future.result(10)


def test_a_success_that_is_kept_is_not_done_again() -> None:
    shared = _SharedWork(Work(), is_cached=True)
    assert [outcome(shared.result()), outcome(shared.result())] == [1, 1]


def test_work_that_is_not_kept_is_done_for_everyone_who_asks_later() -> None:
    shared = _SharedWork(Work(), is_cached=False)
    assert [outcome(shared.result()), outcome(shared.result())] == [1, 2]


def test_a_failure_is_told_and_tried_again() -> None:
    shared = _SharedWork(Work(failures=1), is_cached=True)
    with pytest.raises(OSError, match="full"):
        outcome(shared.result())
    assert outcome(shared.result()) == 2


def test_all_who_ask_meanwhile_share_one_outcome() -> None:
    work = Work()
    work.may_end.clear()
    shared = _SharedWork(work, is_cached=False)
    asked = [shared.result() for _ in range(5)]
    work.may_end.set()
    assert [outcome(each) for each in asked] == [1] * 5


def test_one_who_stops_waiting_takes_nothing_from_the_others() -> None:
    work = Work()
    work.may_end.clear()
    shared = _SharedWork(work, is_cached=True)

    async def give_up_and_ask_again() -> int:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.wrap_future(shared.result())
        work.may_end.set()
        return await asyncio.wrap_future(shared.result())

    assert asyncio.run(give_up_and_ask_again()) == 1


def test_what_is_told_is_one_line_and_never_a_traceback() -> None:
    told = _not_ready("Redis was not found. Install it.\nlog line\nlog line")
    assert isinstance(told, NotReady)
    assert told.message == "Redis was not found. Install it."
    assert "up.log" in _not_ready('Traceback (most recent call last):\n  File "/x"').message
