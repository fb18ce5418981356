"""The shared event loop thread of a process."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Iterator

import pytest

from runners.invocation.event_loop import LoopThread, get_loop
from tests.support.runs.waiting import eventually


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


async def answer() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_a_coroutine_runs_on_the_loop_thread_and_its_result_is_returned(loop: LoopThread) -> None:
    assert loop.submit(answer()).result(5) == "continuity-loop"


def test_an_exception_is_raised_to_the_submitter(loop: LoopThread) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loop.submit(fail()).result(5)


def test_cancelling_the_future_cancels_the_task(loop: LoopThread) -> None:
    ended = threading.Event()

    async def wait_long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    future = loop.submit(wait_long())
    assert loop.ping(5)
    future.cancel()
    assert ended.wait(5)


def test_a_coroutine_that_takes_too_long_is_cancelled(loop: LoopThread) -> None:
    assert loop.run(answer(), 5)
    endless = asyncio.sleep(3600, "slept")
    assert loop.run(endless, 0.05) is None
    assert eventually(lambda: inspect.getcoroutinestate(endless) == inspect.CORO_CLOSED)


def test_ping_detects_a_loop_that_hangs(loop: LoopThread) -> None:
    is_hanging, may_end = threading.Event(), threading.Event()

    async def hang() -> None:
        is_hanging.set()
        may_end.wait(60)

    assert loop.ping(5)
    hanging = loop.submit(hang())
    assert is_hanging.wait(60)
    assert not loop.ping(0.05)
    may_end.set()
    hanging.result(60)
    assert loop.ping(5)


def test_a_closed_loop_cancels_its_tasks_and_accepts_no_more(loop: LoopThread) -> None:
    sleeping = loop.submit(asyncio.sleep(60))
    loop.close()
    loop.close()
    assert sleeping.cancelled()
    assert not loop.ping(1)
    with pytest.raises(RuntimeError):
        loop.submit(answer())


def test_a_process_has_one_loop_and_a_closed_one_is_replaced() -> None:
    first = get_loop()
    assert get_loop() is first
    first.close()
    assert get_loop() is not first
    assert get_loop().submit(answer()).result(5)
    get_loop().close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_gets_its_own_loop() -> None:
    assert get_loop().submit(answer()).result(5)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if get_loop().submit(answer()).result(5) else 1)
        except BaseException:  # noqa: BLE001
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert get_loop().submit(answer()).result(5)
    get_loop().close()
