"""Waiting for runs: notifications wake waiters at once, polling works without Redis, and
waiters hold no thread.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.db import OperationalError, connection
from django.test import override_settings

from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runs.events import notify
from runs.journal.writer import Ending, write
from runs.lifecycle.changes import NewEvent, Transition
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus
from runs.queries import runs
from runs.streaming import hub, long_poll
from runs.streaming.hub import get_hub
from runs.streaming.long_poll import submit_and_wait, wait_events, wait_run
from runs.submission.cancel import cancel_run
from tests.services import free_port
from tests.support.runs.event_streams import until
from tests.support.runs.worker_rows import must_take

Answer = TypeVar("Answer")
Submit = Callable[..., str]


def call_later(seconds: float, function: Callable[[], object]) -> threading.Thread:
    """Call the function on another thread after a delay, as another process would."""

    def go() -> None:
        time.sleep(seconds)
        try:
            function()
        finally:
            connection.close()

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def timed(coroutine: Awaitable[Answer]) -> tuple[Answer, float]:
    async def go() -> tuple[Answer, float]:
        start_time = time.monotonic()
        return await coroutine, time.monotonic() - start_time

    return asyncio.run(go())


def write_event(run_id: str) -> None:
    run = Run.objects.get(id=run_id)
    assert apply(Transition(run, {"status": run.status}, events=[NewEvent("tool.update")]))


@contextmanager
def silent_redis() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.fixture
def no_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(notify, "_publisher", notify._Publisher())
    with override_settings(REDIS_URL=f"redis://127.0.0.1:{free_port()}/0"):
        yield


@pytest.mark.slow
def test_an_event_wakes_its_waiter_at_once(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    delays = []
    for number in range(1, 4):
        written_at: list[float] = []

        def write_and_note() -> None:
            write_event(run_id)
            written_at.append(time.monotonic())  # noqa: B023

        thread = call_later(0.5, write_and_note)
        page, _ = timed(wait_events(principal=principal, run_id=run_id, after=number, wait_s=5))
        woken_at = time.monotonic()
        thread.join()
        delays.append(woken_at - written_at[0])
        assert [event["seq"] for event in page["events"]] == [number + 1]
    assert min(delays) < 0.2


@pytest.mark.slow
def test_without_redis_waiters_poll_the_database(
    submit: Submit, principal: Principal, no_redis: None
) -> None:
    run_id = submit()
    thread = call_later(0.3, lambda: write_event(run_id))
    page, seconds = timed(wait_events(principal=principal, run_id=run_id, after=1, wait_s=10))
    thread.join()
    assert len(page["events"]) == 1
    assert seconds < 3


@pytest.mark.slow
def test_a_lost_notification_is_covered_by_the_poll(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit()
    monkeypatch.setattr(notify._publisher, "publish", lambda message: None)
    thread = call_later(0.3, lambda: write_event(run_id))
    page, seconds = timed(wait_events(principal=principal, run_id=run_id, after=1, wait_s=10))
    thread.join()
    assert len(page["events"]) == 1
    assert seconds < hub.POLL_S + 2


def test_events_before_the_wait_are_returned_at_once(submit: Submit, principal: Principal) -> None:
    page, seconds = timed(wait_events(principal=principal, run_id=submit(), wait_s=30))
    assert (page["lastSeq"], seconds < 2) == (1, True)


def test_a_timed_out_wait_returns_an_empty_page(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    page, seconds = timed(wait_events(principal=principal, run_id=run_id, after=1, wait_s=0.4))
    assert page == {"events": [], "lastSeq": 1, "terminal": False}
    assert 0.4 <= seconds < 2


def test_a_wait_ends_with_the_run(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    thread = call_later(0.3, lambda: cancel_run(principal=principal, run_id=run_id))
    run, seconds = timed(wait_run(principal=principal, run_id=run_id, wait_s=20))
    thread.join()
    assert (run["status"], seconds < 3) == ("canceled", True)


def test_a_wait_ends_when_the_run_is_suspended(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(status="running", ready=False, waiting_for={"type": "answer", "question": "?"})
    shown, seconds = timed(wait_run(principal=principal, run_id=run.id, wait_s=20))
    assert (shown["waitingFor"]["type"], seconds < 2) == ("answer", True)


def test_a_run_that_was_read_ahead_of_its_end_is_read_again_at_its_end(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit()

    async def scenario() -> dict[str, Any]:
        async with get_hub().watch(run_id, frozenset()) as (log, _):
            waiting = asyncio.create_task(wait_run(principal=principal, run_id=run_id, wait_s=30))
            await until(lambda: len(log.watchers) == 2)
            await asyncio.sleep(0.2)
            log.reread()
            await asyncio.sleep(0.3)
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
            return await waiting

    run, waited = timed(scenario())
    assert run["status"] == "canceled"
    assert waited < 15


def test_progress_is_reported_while_the_run_is_running(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit("ok", "ok")
    reports: list[tuple[int, int, str]] = []
    reported = threading.Event()

    async def record_progress(done: int, total: int, message: str) -> None:
        reports.append((done, total, message))
        reported.set()

    lease = must_take("w1")
    end = Ending(RunStatus.SUCCEEDED, result={})

    def end_run() -> None:
        assert reported.wait(60)
        write(lease, [], active_ms=1, ending=end)

    thread = call_later(0, end_run)
    timed(wait_run(principal=principal, run_id=run_id, wait_s=20, progress=record_progress))
    thread.join()
    assert reports[0] == (0, 2, "running")


def test_hundreds_of_waiters_share_a_few_threads(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    before = threading.active_count()
    thread_counts: list[int] = []

    async def wait_many_times() -> list[dict[str, Any]]:
        waiters = [
            asyncio.create_task(wait_events(principal=principal, run_id=run_id, after=1, wait_s=30))
            for _ in range(300)
        ]
        await asyncio.sleep(1)
        thread_counts.append(threading.active_count() - before)
        await asyncio.to_thread(call_later(0, lambda: write_event(run_id)).join)
        return await asyncio.gather(*waiters)

    pages, seconds = timed(wait_many_times())
    assert all(len(page["events"]) == 1 for page in pages)
    assert thread_counts[0] <= 10
    assert seconds < 15


def test_no_asyncio_task_or_subscription_is_left_without_waiters(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LINGER_S", 0.05)
    run_id = submit()

    async def wait_and_cancel() -> tuple[int, int, int]:
        await wait_events(principal=principal, run_id=run_id, after=1, wait_s=0.1)
        await until(lambda: len(asyncio.all_tasks()) == 1)
        hub_in_use = get_hub()
        tasks_left = len(asyncio.all_tasks()) - 1
        waiter = asyncio.create_task(
            wait_events(principal=principal, run_id=run_id, after=1, wait_s=30)
        )
        await until(lambda: run_id in hub_in_use._logs)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        await until(lambda: len(asyncio.all_tasks()) == 1)
        return tasks_left, len(hub_in_use._logs), len(asyncio.all_tasks()) - 1

    assert timed(wait_and_cancel())[0] == (0, 0, 0)


def test_a_short_database_outage_does_not_stop_notifications(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit()
    monkeypatch.setattr(notify._publisher, "publish", lambda message: None)
    monkeypatch.setattr(hub, "POLL_S", 0.3)
    last_seqs, failures_left = runs.last_seqs, [2]

    def fail_first(run_ids: Sequence[str]) -> dict[str, int]:
        if failures_left[0]:
            failures_left[0] -= 1
            raise OperationalError("the server closed the connection")
        return last_seqs(run_ids)

    monkeypatch.setattr(runs, "last_seqs", fail_first)
    thread = call_later(0.5, lambda: write_event(run_id))
    page, seconds = timed(wait_events(principal=principal, run_id=run_id, after=1, wait_s=10))
    thread.join()
    assert (len(page["events"]), failures_left, seconds < 6) == (1, [0], True)


def test_an_unavailable_redis_does_not_delay_commits(submit: Submit, no_redis: None) -> None:
    run_id = submit()
    start_time = time.monotonic()
    for _ in range(10):
        write_event(run_id)
    assert time.monotonic() - start_time < 2


def test_a_hanging_redis_delays_commits_only_briefly(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit()
    monkeypatch.setattr(notify, "_publisher", notify._Publisher())
    with silent_redis() as url, override_settings(REDIS_URL=url):
        start_time = time.monotonic()
        for _ in range(10):
            write_event(run_id)
        assert time.monotonic() - start_time < 3


def test_auto_mode_stops_waiting_and_returns_the_handle(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "AUTO_WAIT_S", 0.3)
    call = {"templateId": "test_stepwise", "inputs": {"do": ["ok"]}}
    answer, _ = timed(submit_and_wait(principal=principal, call=call))
    assert (answer["mode"], answer["status"]) == ("async", "queued")
    assert Run.objects.get().mode == "async"
