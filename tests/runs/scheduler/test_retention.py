"""Retention: what is deleted when it expires, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.test import override_settings

from decisions.foundation.errors import RunNotFound
from decisions.foundation.infra import staleness
from decisions.identity.principals import Principal
from runs.models import Run
from runs.queries.run_lists import list_runs
from runs.queries.runs import get_run
from runs.scheduler.queue_timeouts import QueueTimeouts, time_out_queued_run
from runs.scheduler.retention import delete_old_runs, hide_runs
from tests.support.runs.worker_rows import error_of, fresh, must_take

MakeRun = Callable[..., Run]
Submit = Callable[..., str]


def make_ended_run(make_run: MakeRun, **ago: int) -> Run:
    return make_run(status="succeeded", ended_at=datetime.now(UTC) - timedelta(**ago))


def test_hiding_happens_once_and_keeps_the_row_for_the_admin(make_run: MakeRun) -> None:
    old = make_ended_run(make_run, minutes=31)
    make_ended_run(make_run, minutes=29)
    make_run(status="running", created_at=datetime.now(UTC) - timedelta(days=9))
    assert (hide_runs(), hide_runs()) == (1, 0)
    assert fresh(old.id).hidden_at is not None


def test_a_hidden_run_stays_hidden_when_the_clock_is_set_back(
    make_run: MakeRun, principal: Principal
) -> None:
    old = make_ended_run(make_run, minutes=31)
    hide_runs()
    Run.objects.update(ended_at=datetime.now(UTC))
    with pytest.raises(RunNotFound):
        get_run(principal=principal, run_id=old.id)


@override_settings(RUN_RETENTION_DAYS=0)
def test_a_run_that_has_not_ended_is_never_deleted(make_run: MakeRun) -> None:
    for status in ("queued", "running"):
        make_run(status=status, created_at=datetime.now(UTC) - timedelta(days=99))
    assert delete_old_runs() == 0


def test_a_sync_run_that_is_queued_for_its_whole_timeout_fails(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(staleness, "time", SimpleNamespace(monotonic=lambda: clock.now))
    sync_run = submit(options={"mode": "sync", "timeoutMs": 5000})
    async_run = submit(options={"mode": "async", "timeoutMs": 5000})
    timeouts = QueueTimeouts()
    for seconds, status in ((0.0, "queued"), (4.9, "queued"), (5.0, "failed")):
        clock.now = seconds
        timeouts.fail_expired_runs()
        assert fresh(sync_run).status == status
    assert error_of(fresh(sync_run))["errorCode"] == "RUN_TIMEOUT"
    assert fresh(async_run).status == "queued"


def test_a_run_that_started_meanwhile_does_not_time_out_in_the_queue(submit: Submit) -> None:
    run_id = submit()
    stale = fresh(run_id)
    must_take("w1")
    time_out_queued_run(stale)
    assert fresh(run_id).status == "running"


def test_a_list_counts_every_match_and_pages_through_ties(
    make_run: MakeRun, principal: Principal, outsider: Principal
) -> None:
    created_at = datetime.now(UTC)
    ids = sorted((make_run(created_at=created_at).id for _ in range(7)), reverse=True)
    make_run(status="running", lease_owner="w")
    make_run(workspace_id=outsider.workspace_id)
    listed: list[str] = []
    cursor, has_more = None, True
    while has_more:
        page = list_runs(principal=principal, status="queued", limit=3, cursor=cursor)
        assert page["total"] == 7
        listed += [run["runId"] for run in page["runs"]]
        cursor, has_more = page["nextCursor"], page["hasMore"]
    assert listed == ids
    assert list_runs(principal=principal, offset=2**53 - 1)["runs"] == []


def test_a_hidden_run_is_kept_for_its_retention(make_run: MakeRun) -> None:
    recent, _ = make_ended_run(make_run, days=29), make_ended_run(make_run, days=31)
    assert delete_old_runs() == 1
    assert fresh(recent.id).hidden_at is not None
    assert Run.objects.count() == 1
