"""Fixtures for tests that use a database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from decisions.identity.principals import Principal
from runners.browser.pool.pooled_sessions import get_session_pool
from runners.invocation.event_loop import get_loop
from runs.models import Run
from runs.queue import wakeups
from runs.sessions.held_pages import CLOSE_S, count_held_pages, take_held_page
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.rest.rest_server import close_pooled_connections
from tests.support.runs.unusual_values_template import UnusualValues


@pytest.fixture(scope="session", autouse=True)
def close_connections(django_db_setup: None) -> Iterator[None]:
    """Close the connections of the transports' thread pool, so that the database can be removed."""
    yield
    close_pooled_connections()


@pytest.fixture
def idle_worker(principal: Principal) -> Iterator[WorkerProcess]:
    """A worker in this process without threads of its own, which works when a test calls it."""
    process = WorkerProcess()
    yield process
    process.close()
    _close_pages()


@pytest.fixture
def sent_wakeups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Record the queue and the run of each wake-up instead of sending it."""
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(wakeups, "send", lambda queue, run_id: sent.append((queue, run_id)))
    return sent


@pytest.fixture
def worker(principal: Principal, settings: Any) -> Iterator[WorkerProcess]:
    """A worker in this process with its heartbeat thread and its watcher, at a short interval."""
    before = set(threading.enumerate())
    # Use the shared settings fixture: an override that ends before an older one leaks it.
    settings.LEASE_BEAT_S, settings.POLL_S = 0.1, 60
    process = WorkerProcess("w1")
    process.open()
    yield process
    process.close()
    _close_pages()
    for thread in set(threading.enumerate()) - before:
        if thread.name in ("heartbeat", "leases", "queue", "session-maintenance", "publisher"):
            thread.join(5)


def _close_pages() -> None:
    """Close the pages of named sessions and of suspended runs, as the end of a process does: a
    later test would find an open page.
    """
    for run_id in Run.objects.values_list("id", flat=True) if count_held_pages() else ():
        if (page := take_held_page(run_id)) is not None:
            get_loop().submit(page.close()).result(CLOSE_S)
    pool = get_session_pool()
    for session_id in pool.ids():
        get_loop().submit(pool.drop(session_id)).result(CLOSE_S)


@pytest.fixture
def submit_unusual(principal: Principal) -> Callable[..., str]:
    """Submit a run of the template of unusual values and return its id:
    `submit_unusual("output nul", "emit nan")`.
    """

    def make(*do: str, options: dict[str, Any] | None = None, **inputs: Any) -> str:
        return submit_run(
            principal=principal,
            template_id=UnusualValues.template_id,
            inputs={"do": list(do), **inputs},
            options={"mode": "async", **(options or {})},
        ).run_id

    return make


@pytest.fixture
def in_background() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Call a function on a separate thread, which must end before the test does."""
    started: list[threading.Thread] = []

    def start(function: Callable[[], object]) -> threading.Thread:
        def go() -> None:
            try:
                function()
            finally:
                connection.close()

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        started.append(thread)
        return thread

    yield start
    for thread in started:
        thread.join(20)
        assert not thread.is_alive(), "a background call did not end"


@pytest.fixture
def background_worker(
    idle_worker: WorkerProcess, in_background: Callable[[Callable[[], object]], threading.Thread]
) -> Iterator[None]:
    """Run a worker on a thread of this process; it executes the submitted runs."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.02):
            idle_worker.work()

    in_background(work)
    yield
    stop.set()
    idle_worker.drain()  # steps that still run are interrupted, not waited for


@pytest.fixture
def execute_run(worker: WorkerProcess) -> Callable[[str], Run]:
    """Execute everything that is queued and return the run, which must have ended."""

    def work(run_id: str) -> Run:
        worker.work()
        run = Run.objects.get(id=run_id)
        assert run.ended_at is not None, f"the run did not end: {run.status}"
        return run

    return work
