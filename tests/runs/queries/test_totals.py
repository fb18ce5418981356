"""The total of a list equals the number of its rows, whichever process writes them, however a
transaction ends, and while the changes are folded.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.backends.sqlite3.base import SQLiteCursorWrapper

from decisions.identity.principals import Principal
from runs.models import Run, RunTotal, RunTotalChange
from runs.operations.health.checks import check_totals
from runs.queries import totals
from runs.queries.run_lists import list_runs
from runs.queries.totals import (
    count_inconsistent_totals,
    fold_totals,
    missing_triggers,
    repair_totals,
)
from runs.scheduler.retention import hide_runs
from runs.submission.cancel import cancel_run
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import must_take

MakeRun = Callable[..., Run]
Submit = Callable[..., str]
FILTERS: list[dict[str, Any]] = [
    {},
    {"status": "succeeded"},
    {"template_id": "b"},
    {"status": "succeeded", "template_id": "b"},
]


def total(principal: Principal, **filters: Any) -> int:
    return int(list_runs(principal=principal, limit=1, **filters)["total"])


def drop_triggers() -> None:
    on = " ON runs_run" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in ("runs_total_added", "runs_total_moved", "runs_total_removed"):
            cursor.execute(f"DROP TRIGGER {name}{on}")


@pytest.mark.parametrize("folds_between", [False, True])
def test_a_total_follows_a_run_through_its_status_changes(
    submit: Submit, principal: Principal, folds_between: bool
) -> None:
    run_id = submit()
    for status, change in (
        ("queued", lambda: None),
        ("running", lambda: must_take("w1")),
        ("canceled", lambda: cancel_run(principal=principal, run_id=run_id)),
    ):
        change()
        if folds_between:
            assert fold_totals() == 1
        for other in ("queued", "running", "canceled"):
            assert total(principal, status=other) == (other == status)
        assert total(principal) == 1
    assert RunTotalChange.objects.count() == (0 if folds_between else 3)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_a_total_counts_only_matching_runs_of_its_workspace(
    make_run: MakeRun, principal: Principal, outsider: Principal, filters: dict[str, Any]
) -> None:
    for workspace_id in (principal.workspace_id, outsider.workspace_id):
        for status, template_id in (("succeeded", "a"), ("succeeded", "b"), ("running", "b")):
            make_run(status=status, template_id=template_id, workspace_id=workspace_id)
    expected = sum(
        filters.items() <= {"status": status, "template_id": template_id}.items()
        for status, template_id in (("succeeded", "a"), ("succeeded", "b"), ("running", "b"))
    )
    assert total(principal, **filters) == expected
    fold_totals()
    assert total(principal, **filters) == expected


def test_rolled_back_rows_are_not_counted(make_run: MakeRun, principal: Principal) -> None:
    with transaction.atomic():
        make_run()
        transaction.set_rollback(True)
    assert total(principal) == 0
    assert count_inconsistent_totals() == 0


def test_hiding_a_run_lowers_the_total_once_and_deleting_it_changes_nothing(
    make_run: MakeRun, principal: Principal
) -> None:
    old = make_run(status="succeeded", ended_at=datetime.now(UTC) - timedelta(hours=1))
    make_run()
    assert total(principal) == 1  # expired, though the scheduler has not hidden it yet
    hide_runs()
    assert total(principal) == 1
    old.delete()
    assert (total(principal), count_inconsistent_totals()) == (1, 0)


def test_deleting_a_run_that_was_not_hidden_lowers_the_total(
    make_run: MakeRun, principal: Principal
) -> None:
    make_run().delete()
    assert (total(principal), count_inconsistent_totals()) == (0, 0)


def test_progress_updates_write_no_total_change(make_run: MakeRun) -> None:
    run = make_run()
    fold_totals()
    Run.objects.filter(id=run.id).update(done_steps=1, active_ms=5, status=run.status)
    assert not RunTotalChange.objects.exists()


def test_concurrent_writers_and_folders_lose_no_change(
    make_run: MakeRun, principal: Principal
) -> None:
    def create_and_start_run() -> None:
        run = make_run()
        Run.objects.filter(id=run.id).update(status="running")
        assert total(principal) >= 1

    calls: list[Callable[[], object]] = [partial(create_and_start_run) for _ in range(6)]
    at_once([*calls, *[fold_totals] * 3])
    assert count_inconsistent_totals() == 0
    fold_totals()
    assert (total(principal), total(principal, status="running")) == (6, 6)
    assert RunTotal.objects.get(status="running").number == 6


def test_folding_continues_in_batches(
    make_run: MakeRun, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "FOLD_BATCH", 3)
    for _ in range(7):
        make_run()
    assert fold_totals() == 7
    assert (total(principal), RunTotalChange.objects.count()) == (7, 0)


def test_the_next_migrate_restores_missing_triggers_and_the_totals(
    make_run: MakeRun, principal: Principal
) -> None:
    make_run()
    drop_triggers()
    make_run()
    assert (total(principal), count_inconsistent_totals(), len(missing_triggers())) == (1, 1, 3)
    assert check_totals().verdict == "bad"
    call_command("migrate", verbosity=0)
    assert check_totals().verdict == "ok"
    assert (total(principal), count_inconsistent_totals(), missing_triggers()) == (2, 0, set())


def test_repair_corrects_totals_that_are_too_high_or_too_low(
    make_run: MakeRun, principal: Principal
) -> None:
    make_run()
    RunTotalChange.objects.create(workspace_id="gone", template_id="t", became="failed", number=7)
    RunTotalChange.objects.update(number=5)
    assert check_totals().verdict == "bad"
    call_command("recount_runs", stdout=(output := io.StringIO()))
    assert output.getvalue().startswith("2 totals were wrong")
    assert (total(principal), count_inconsistent_totals(), repair_totals()) == (1, 0, 0)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="sqlite3's")
def test_repair_counts_in_a_turkish_locale(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunTotalChange.objects.create(workspace_id="gone", template_id="t", became="failed", number=7)
    # The `rowcount` after an INSERT in that locale with Python 3.11; few machines have it.
    monkeypatch.setattr(SQLiteCursorWrapper, "rowcount", -1, raising=False)
    assert (repair_totals(), repair_totals()) == (1, 0)


@pytest.mark.parametrize("offset", [0, 2, 5, 8, 9, 10, 2**53 - 1])
@pytest.mark.parametrize("overdue", [0, 3])
def test_a_page_is_the_same_whichever_end_it_is_read_from(
    make_run: MakeRun, principal: Principal, offset: int, overdue: int
) -> None:
    newest = datetime.now(UTC)
    ids = [make_run(created_at=newest - timedelta(seconds=n)).id for n in range(10)]
    for n in range(overdue):
        ended_at = newest - timedelta(hours=1)
        make_run(status="failed", created_at=ended_at + timedelta(seconds=n), ended_at=ended_at)
    page = list_runs(principal=principal, limit=3, offset=offset)
    assert [run["runId"] for run in page["runs"]] == ids[offset : offset + 3]
    more = offset + 3 < 10
    assert (page["total"], page["hasMore"]) == (10, more)
    assert (page["nextCursor"] is not None) == more


@pytest.mark.slow
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_every_filter_of_the_list_has_its_own_index(
    make_run: MakeRun, principal: Principal, filters: dict[str, Any]
) -> None:
    example = make_run(status="succeeded")
    columns = {field.attname: getattr(example, field.attname) for field in Run._meta.fields}
    runs = [Run(**columns) for _ in range(3000)]
    for n, run in enumerate(runs):
        run.id, run.created_at = f"run_{n}", example.created_at - timedelta(seconds=n)
        run.workspace_id = f"other{n % 8}" if n % 8 else principal.workspace_id
        run.template_id, run.status = "abcd"[n // 8 % 4], ("succeeded", "canceled")[n // 32 % 2]
        run.error = {"errorCode": "RUN_CANCELED"}
    Run.objects.bulk_create(runs)
    rows = Run.objects.filter(
        workspace_id=principal.workspace_id, hidden_at__isnull=True, **filters
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_sort = off")
        # In a table this small the planner may prefer the admin's; the list must not need them.
        for admin_index in ("newest_of_all", "ended_badly"):
            cursor.execute(f"DROP INDEX run_{admin_index}")
        plan = rows.order_by("-created_at", "-id").values("id")[:50].explain()
        transaction.set_rollback(True)
    indexes = {
        "": "run_seen",
        "status": "run_seen_by_status",
        "template_id": "run_seen_by_template",
    }
    assert indexes.get("".join(filters), "run_seen_by_both") in plan.split()
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
