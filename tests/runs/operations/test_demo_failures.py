"""The first run when something fails: one sentence, the next step, and no run left active."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from django.db import connection
from django.test import override_settings
from rich.console import Console

from decisions.identity.principals import local_principal
from runs.models import Run
from runs.operations.demo import job
from runs.operations.demo.job import run_demo
from runs.submission.cancel import cancel_run

BASE_URL = "http://127.0.0.1:8000"


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO())


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread as Ctrl-C does, with a signal of the test."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR2, interrupt)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGUSR2))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR2, before)


@pytest.mark.django_db(transaction=True)
def test_without_a_worker_it_gives_up_and_cancels_its_run(console: Console) -> None:
    assert run_demo(base_url=BASE_URL, console=console, timeout_s=0.3) is False
    run = Run.objects.get()
    assert run.status == "canceled"
    assert f"Failed: {run.id} was still queued after 0 s, with 0 of 16 pages read" in printed(
        console
    )
    assert "manage.py doctor" in printed(console)


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_cancels_the_run_and_raises_in_the_caller(console: Console) -> None:
    with interrupted_after(0.5), pytest.raises(KeyboardInterrupt):
        run_demo(base_url=BASE_URL, console=console, timeout_s=20)
    run = Run.objects.get()
    assert run.status == "canceled"
    assert "Interrupted" in str(run.error)


def interrupt_during_a_query(*_: object, **__: object) -> NoReturn:
    if connection.vendor == "postgresql":
        connection.connection.pgconn.send_query(b"SELECT 1")
    raise KeyboardInterrupt


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_during_a_query_cancels_the_run_too(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "events_of", interrupt_during_a_query)
    with pytest.raises(KeyboardInterrupt):
        run_demo(base_url=BASE_URL, console=console, timeout_s=20)
    assert Run.objects.get().status == "canceled"


def cancel_the_only_run() -> None:
    cancel_run(principal=local_principal(), run_id=Run.objects.get().id, reason="Not wanted.")
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_a_run_canceled_by_another_user_is_explained(console: Console) -> None:
    canceler = threading.Timer(0.5, cancel_the_only_run)
    canceler.start()
    assert run_demo(base_url=BASE_URL, console=console, timeout_s=20) is False
    canceler.join()
    assert "canceled: Canceled by local while queued. Not wanted." in printed(console)
    assert "What to do: " in printed(console)


@pytest.mark.django_db(transaction=True)
def test_a_refusal_is_printed_with_its_recovery(console: Console) -> None:
    canceler = threading.Timer(0.5, cancel_the_only_run)
    canceler.start()
    with override_settings(RUN_TTL_MS=0):
        assert run_demo(base_url=BASE_URL, console=console, timeout_s=20) is False
    canceler.join()
    assert f"Failed: There is no run {Run.objects.get().id}." in printed(console)
    assert "What to do: Check the runId" in printed(console)


@pytest.mark.django_db(transaction=True)
def test_a_broken_database_is_reported_without_a_traceback_or_sql(console: Console) -> None:
    table = Run._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO gone")
    try:
        assert run_demo(base_url=BASE_URL, console=console, timeout_s=5) is False
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE gone RENAME TO {table}")
    assert "manage.py doctor" in printed(console)
    assert table not in printed(console)
