"""The order in which transitions lock rows on PostgreSQL, what they see after waiting for a lock,
and the repetition of a write that lost a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event

import pytest
from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected

from artifacts.models import Artifact
from artifacts.services import StoredBlob
from decisions.foundation.database.repeat import repeat_after_conflict
from decisions.identity.principals import Principal
from runs.journal import writer
from runs.lifecycle.changes import StepChange, Transition
from runs.lifecycle.state_machine import move
from runs.models import Run, RunStatus, Slot, StepStatus
from runs.queue.leases import lease_run
from runs.submission.cancel import cancel_run
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.waiting import wait_until
from tests.support.runs.worker_rows import must_take

MakeRun = Callable[..., Run]
on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one lock for all rows"
)


def count_waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


@contextmanager
def held_while_another_waits(begun: Event) -> Iterator[None]:
    """Commit what the block writes once another connection waits for one of its locks."""
    with transaction.atomic():
        yield
        begun.set()
        wait_until(lambda: count_waiting() > 0, within_s=30)


@on_postgresql
def test_a_claim_that_waits_for_the_run_has_locked_no_slot(make_run: MakeRun) -> None:
    run, begun = make_run(), Event()
    unlocked: list[Slot] = []

    def hold() -> None:
        with transaction.atomic():
            with held_while_another_waits(begun):
                Run.objects.filter(id=run.id).update(ready=False)
            unlocked.extend(Slot.objects.select_for_update(skip_locked=True))

    def claim() -> bool:
        begun.wait(30)
        return lease_run(run, worker_id="w")

    assert at_once([hold, claim]) == [None, False]
    assert len(unlocked) == Slot.objects.count()


@on_postgresql
def test_an_artifact_written_while_its_run_is_canceled_expires(
    submit: Callable[..., str], principal: Principal
) -> None:
    run_id, begun = submit("ok"), Event()
    lease = must_take("w1")
    blob = StoredBlob("art_late", "0" * 64, 1, "n", "text/plain", "file")
    change = StepChange(0, StepStatus.SUCCEEDED, [], output={}, blobs=[blob])

    def journal() -> None:
        with held_while_another_waits(begun):
            writer.write(lease, [change], active_ms=1)

    def cancel() -> bool:
        begun.wait(30)
        return bool(cancel_run(principal=principal, run_id=run_id)["success"])

    assert at_once([journal, cancel]) == [None, True]
    assert Artifact.objects.get().expires_at is not None


@on_postgresql
def test_a_transition_that_loses_a_deadlock_is_written_again(make_run: MakeRun) -> None:
    run, begun = make_run(status="running", epoch=1), Event()
    Slot.objects.filter(number=0).update(run_id=run.id, epoch=1)

    def lock_slot_then_run() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '60s'")  # the other one loses, after a second
        with transaction.atomic():
            with held_while_another_waits(begun):
                Slot.objects.select_for_update().get(number=0)
            Run.objects.select_for_update().get(id=run.id)

    def end() -> None:
        begun.wait(30)
        change = Transition(run, {"status": RunStatus.RUNNING}, epoch=1, free_slot=True)
        move(change, RunStatus.SUCCEEDED, actor="w")

    at_once([lock_slot_then_run, end])
    run.refresh_from_db()
    assert (run.status, run.last_seq) == ("succeeded", 1)
    assert Slot.objects.get(number=0).run_id is None


def lose(calls: list[int], *, times: int) -> int:
    calls.append(1)
    if len(calls) <= times:
        raise OperationalError("deadlock detected") from DeadlockDetected()
    return len(calls)


@pytest.mark.django_db(transaction=True)
def test_a_write_is_repeated_once() -> None:
    calls: list[int] = []
    assert repeat_after_conflict(partial(lose, calls, times=1)) == 2
    calls.clear()
    with pytest.raises(OperationalError):
        repeat_after_conflict(partial(lose, calls, times=2))
    assert len(calls) == 2


@pytest.mark.django_db(transaction=True)
def test_inside_a_transaction_nothing_is_repeated() -> None:
    calls: list[int] = []
    with transaction.atomic(), pytest.raises(OperationalError):
        repeat_after_conflict(partial(lose, calls, times=1))
    assert len(calls) == 1


@pytest.mark.django_db(transaction=True)
def test_another_error_is_not_repeated() -> None:
    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise OperationalError("the connection is closed")

    with pytest.raises(OperationalError):
        repeat_after_conflict(fail)
    assert len(calls) == 1
