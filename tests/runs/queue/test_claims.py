"""Dispatch order: which run is claimed next, and that each run is claimed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from decisions.foundation.infra import prepared_statements
from decisions.identity.principals import Principal
from runs.journal.reader import read_journal
from runs.lifecycle.lease import Lease
from runs.models import Run, RunEvent, Slot, Worker
from runs.queue import dispatch_order as queue_order
from runs.queue import leases
from runs.queue.leases import lease_run
from runs.queue.slots import ensure_slots
from runs.submission.cancel import cancel_run
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import register, take

MakeRun = Callable[..., Run]
START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def worker(principal: Principal) -> str:
    return register("w1")


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def claim_id(worker: str) -> str | None:
    lease = take(worker)
    return lease.run.id if lease else None


def test_runs_are_claimed_in_the_order_they_came(make_run: MakeRun, worker: str) -> None:
    second, first = (make_run(created_at=at(s)).id for s in (2, 1))
    assert [claim_id(worker), claim_id(worker), claim_id(worker)] == [first, second, None]


def test_a_workspace_with_fewer_running_goes_first(make_run: MakeRun, worker: str) -> None:
    busy = [make_run(created_at=at(n), workspace_id="busy").id for n in range(3)]
    late = make_run(created_at=at(9), workspace_id="quiet").id
    assert [claim_id(worker) for _ in range(4)] == [busy[0], late, busy[1], busy[2]]


def test_resumed_runs_are_claimed_before_new_runs(make_run: MakeRun, worker: str) -> None:
    waiting = make_run(created_at=at(1)).id
    resumed = make_run(created_at=at(5), started_at=at(6), status="running", epoch=2).id
    assert [claim_id(worker), claim_id(worker)] == [resumed, waiting]


@pytest.mark.parametrize(
    "columns",
    [
        {"ready": False},
        {"status": "running", "lease_owner": "other"},
        {"status": "canceled"},
        {"status": "running", "ready": False, "waiting_for": {"type": "answer"}},
    ],
)
def test_an_ineligible_run_is_not_claimed(
    make_run: MakeRun, worker: str, columns: dict[str, object]
) -> None:
    make_run(**columns)
    assert take(worker) is None


def test_a_claim_starts_the_run_with_a_new_epoch(make_run: MakeRun, worker: str) -> None:
    run = make_run(epoch=4)
    lease = take(worker)
    run.refresh_from_db()
    assert (lease and lease.epoch, run.epoch, run.lease_owner) == (5, 5, worker)
    assert (run.status, run.started_at is None) == ("running", False)
    assert Slot.objects.filter(run_id=run.id, worker_id=worker, epoch=5).count() == 1
    assert list(RunEvent.objects.values_list("type", flat=True)) == ["run.started"]


def test_a_resumed_run_keeps_its_start_and_emits_run_resumed(
    make_run: MakeRun, worker: str
) -> None:
    run = make_run(status="running", started_at=at(1), epoch=1)
    assert take(worker)
    run.refresh_from_db()
    assert run.started_at == at(1)
    assert RunEvent.objects.get().type == "run.resumed"


@override_settings(MAX_CONCURRENT_RUNS=2)
def test_never_more_runs_than_slots(make_run: MakeRun, worker: str) -> None:
    for n in range(3):
        make_run(created_at=at(n))
    assert [bool(take(worker)) for _ in range(3)] == [True, True, False]
    assert Run.objects.filter(status="queued").count() == 1


@override_settings(MAX_CONCURRENT_RUNS=2)
def test_slots_above_a_lowered_maximum_are_not_taken(make_run: MakeRun, worker: str) -> None:
    assert Slot.objects.count() == 5
    for _ in range(3):
        make_run()
    while take(worker):
        pass
    taken = Slot.objects.filter(run_id__isnull=False).values_list("number", flat=True)
    assert sorted(taken) == [0, 1]


def test_a_raised_maximum_creates_new_slots(principal: Principal) -> None:
    with override_settings(MAX_CONCURRENT_RUNS=8):
        at_once([ensure_slots] * 4)
    assert sorted(Slot.objects.values_list("number", flat=True)) == list(range(8))


@override_settings(MAX_CONCURRENT_RUNS=3)
def test_concurrent_claims_take_each_run_once_and_never_exceed_the_slots(
    make_run: MakeRun, worker: str
) -> None:
    for n in range(12):
        make_run(created_at=at(n))
    found = at_once([partial(take, worker)] * 8)
    taken = [lease.run.id for lease in found if lease]
    assert len(taken) == len(set(taken)) == 3
    assert Slot.objects.filter(run_id__isnull=False).count() == 3
    assert set(Run.objects.filter(status="running").values_list("id", flat=True)) == set(taken)


needs_row_locks = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one lock for all rows"
)


def lock_one_after_the_other(count: int) -> list[str]:
    """Choose runs in this many transactions that are all open at once; return the runs' ids."""
    with transaction.atomic():
        found = queue_order.next_run("w1", lock=True)
        assert found is not None
        later = at_once([partial(lock_one_after_the_other, count - 1)]) if count > 1 else [[]]
        return [found.id, *later[0]]


@needs_row_locks
def test_claims_at_once_take_the_runs_that_claims_in_turn_would_take(make_run: MakeRun) -> None:
    busy = [make_run(created_at=at(n), workspace_id="busy").id for n in range(4)]
    late = [make_run(created_at=at(9 + n), workspace_id="late").id for n in range(2)]
    Slot.objects.filter(number=0).update(run_id="other", workspace_id="late")
    chosen = lock_one_after_the_other(6)
    assert chosen == [busy[0], busy[1], late[0], busy[2], late[1], busy[3]]


@needs_row_locks
def test_a_run_is_chosen_though_its_row_is_locked_if_no_other_waits(make_run: MakeRun) -> None:
    """It may be locked by a write after which it still waits; no wake-up would come for it."""
    run = make_run()
    assert lock_one_after_the_other(2) == [run.id, run.id]


@needs_row_locks
@override_settings(MAX_CONCURRENT_RUNS=16)
def test_sixteen_claimers_look_once_for_each_run(
    make_run: MakeRun, worker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_slots()
    for n in range(24):
        make_run(created_at=at(n))
    looks: list[str] = []
    original = queue_order.next_run

    def next_run(worker_id: str, *, lock: bool) -> Run | None:
        looks.append(worker_id)
        return original(worker_id, lock=lock)

    monkeypatch.setattr(leases, "next_run", next_run)
    taken = [lease.run.id for lease in at_once([partial(take, worker)] * 16) if lease]
    assert len(set(taken)) == 16
    assert len(looks) <= 1.3 * 16


@needs_row_locks
@override_settings(MAX_CONCURRENT_RUNS=60)
def test_no_part_of_the_query_reads_the_slots_for_each_workspace(
    make_run: MakeRun, worker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_slots()
    for n in range(40):
        make_run(workspace_id=f"w{n}")
        Slot.objects.filter(number=n).update(run_id=f"other{n}", workspace_id=f"w{n}")
    plans: list[dict[str, Any]] = []

    def explain(model: object, query: str, params: dict[str, Any]) -> list[Run]:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", params)
            plans.append(cursor.fetchone()[0][0]["Plan"])
        return []

    monkeypatch.setattr(prepared_statements, "fetch_rows_and_more", explain)
    with transaction.atomic():
        queue_order.next_run(worker, lock=True)
    rows = [node["Actual Rows"] * node["Actual Loops"] for node in nodes_of(plans[0])]
    assert 40 <= max(rows) <= 2 * (40 + 60)


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes_of(part)


def test_one_of_many_workers_gets_the_lease_of_a_run(make_run: MakeRun, worker: str) -> None:
    run = make_run()
    leased = at_once([partial(lease_run, run, worker_id=f"w{n}") for n in range(6)])
    run.refresh_from_db()
    assert sum(leased) == 1
    assert (run.epoch, run.lease_owner) == (1, f"w{leased.index(True)}")
    assert Slot.objects.filter(run_id__isnull=False).count() == 1
    assert RunEvent.objects.filter(run=run).count() == 1


def test_a_run_pinned_to_a_live_worker_is_claimed_by_it_alone(
    make_run: MakeRun, worker: str
) -> None:
    run = make_run(pinned_worker=worker)
    assert take("another") is None
    assert claim_id(worker) == run.id


@pytest.mark.parametrize("lost", [True, False])
def test_a_run_pinned_to_a_lost_worker_may_be_claimed_by_any(
    make_run: MakeRun, worker: str, lost: bool
) -> None:
    """A submit that read the session earlier may write the pin after the loss was handled."""
    run = make_run(pinned_worker="gone")
    if lost:
        now = datetime.now(UTC)
        Worker.objects.create(id="gone", process="", host="", started_at=now, lost_at=now)
    assert claim_id(worker) == run.id


def test_a_cancel_just_before_the_lease_does_not_hide_the_next_run(
    make_run: MakeRun, worker: str, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_run(created_at=at(1)), make_run(created_at=at(2))
    original = queue_order.next_run

    def next_run(worker_id: str, *, lock: bool) -> Run | None:
        found = original(worker_id, lock=False)  # so that it can be canceled meanwhile
        if found is not None and found.id == first.id:
            at_once([partial(cancel_run, principal=principal, run_id=first.id)])
        return found

    monkeypatch.setattr(leases, "next_run", next_run)
    assert claim_id(worker) == second.id


def test_cancel_against_claim_leaves_one_winner(
    make_run: MakeRun, worker: str, principal: Principal
) -> None:
    for _ in range(6):
        run = make_run()
        calls: list[Callable[[], Any]] = [
            partial(take, worker),
            partial(cancel_run, principal=principal, run_id=run.id),
        ]
        lease, canceled = at_once(calls)
        run.refresh_from_db()
        assert run.status == "canceled"  # a cancel wins over a claim, before or after it
        assert canceled["success"]
        types = list(RunEvent.objects.filter(run=run).order_by("seq").values_list("type", "seq"))
        started = [("run.started", 1)] if isinstance(lease, Lease) else []
        assert types == [*started, ("run.canceled", len(started) + 1)]
        Slot.objects.update(run_id=None, worker_id=None, workspace_id=None)


@pytest.mark.slow
@override_settings(MAX_CONCURRENT_RUNS=3)
def test_a_workspace_with_many_runs_does_not_starve_another(make_run: MakeRun, worker: str) -> None:
    """Two hundred runs of one workspace wait before six of the other; slots free up one by one."""
    for n in range(200):
        make_run(created_at=at(n), workspace_id="flood")
    waiting_ids = [make_run(created_at=at(900 + n), workspace_id="patient").id for n in range(6)]
    active_leases: list[Lease] = []
    order: list[str] = []
    while len(order) < 18:
        while (claimed := take(worker)) is not None:
            active_leases.append(claimed)
            order.append(claimed.run.workspace_id)
        ended = active_leases.pop(0)
        Slot.objects.filter(run_id=ended.run.id).update(
            run_id=None, worker_id=None, workspace_id=None
        )
    # Two workspaces share three slots, so each gets at least every third claim.
    assert all(order[:n].count("patient") >= n // 3 for n in range(len(order)))
    taken = [run.id for run in Run.objects.filter(workspace_id="patient", status="running")]
    assert sorted(taken) == sorted(waiting_ids)


@pytest.mark.slow
def test_the_next_run_is_found_by_one_indexed_query(make_run: MakeRun, worker: str) -> None:
    one = make_run(status="succeeded")
    columns = {field.attname: getattr(one, field.attname) for field in Run._meta.fields}
    many = [Run(**{**columns, "id": f"run_{n}"}) for n in range(3000)]
    Run.objects.bulk_create(many)
    waiting = make_run()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        with CaptureQueriesContext(connection) as queries:
            found = queue_order.next_run(worker)
        assert found is not None
        assert found.id == waiting.id
        if connection.vendor == "sqlite":
            statement = queries.captured_queries[0]["sql"]
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
            plan = " ".join(str(row) for row in cursor.fetchall())
            assert "run_waiting" in plan
            assert not re.search(r"SCAN runs_run(?! USING (COVERING )?INDEX run_waiting)", plan)


def test_a_run_that_was_leased_since_it_was_chosen_is_not_claimed(
    make_run: MakeRun, worker: str
) -> None:
    chosen = make_run(status="running", epoch=2)
    lease = take(worker)
    assert lease is not None
    assert leases.release_lease(lease, reason="test", active_ms=0)
    assert not lease_run(chosen, worker_id="late")
    run = Run.objects.get()
    assert (run.epoch, run.lease_owner) == (4, None)


@needs_row_locks
def test_the_steps_of_a_run_that_was_claimed_before_are_read_once_it_is_locked(
    submit: Callable[..., str], worker: str
) -> None:
    """They may have changed since the statement that chose the run began."""
    submit()
    with transaction.atomic():
        run = queue_order.next_run(worker, lock=True)
    assert run is not None
    assert "steps" in vars(run)["_prefetched_objects_cache"]
    assert [step.name for step in read_journal(run)] == ["do ok"]
    lease = take(worker)
    assert lease is not None
    assert leases.release_lease(lease, reason="test", active_ms=0)
    with transaction.atomic():
        run = queue_order.next_run(worker, lock=True)
    assert run is not None
    assert "_prefetched_objects_cache" not in vars(run)


@needs_row_locks
def test_a_claim_finds_out_whether_other_runs_wait(make_run: MakeRun, worker: str) -> None:
    for n in range(2):
        make_run(created_at=at(n))
    claims = [take(worker), take(worker)]
    assert [lease.run.others_wait for lease in claims if lease] == [True, False]
