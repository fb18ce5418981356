"""GET /metrics: what an operator alerts on, for the whole installation, with a few queries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.db.utils import OperationalError

from config import metrics
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.identity.principals import DEFAULT_SCOPES, SCOPES, Principal
from decisions.models import Confirmation, Decision
from runs.models import Run
from runs.operations.health import status as health_status
from runs.queries.totals import fold_totals
from runs.scheduler.retention import hide_runs
from runs.submission.cancel import cancel_run
from tests.support.rest.metrics_scraping import Samples, metric_value, runs_in_status
from tests.support.rest.rest import refusal
from tests.support.runs.worker_rows import must_take

MakeRun = Callable[..., Run]
Submit = Callable[..., str]


def test_the_metrics_count_runs_slots_and_workers(
    scrape: Callable[[], Samples], make_run: MakeRun, submit: Submit
) -> None:
    make_run(status="failed")
    submit()
    found = scrape()
    assert (
        runs_in_status(found, "failed"),
        runs_in_status(found, "queued"),
        runs_in_status(found, "canceled"),
    ) == (1, 1, 0)
    assert (
        metric_value(found, "slots"),
        metric_value(found, "slots_taken"),
        metric_value(found, "workers"),
    ) == (
        5,
        0,
        0,
    )
    assert metric_value(found, "queue_runs") == 1
    assert (metric_value(found, "database_up"), metric_value(found, "redis_up")) == (1, 1)


@pytest.mark.parametrize("folds_between", [False, True])
def test_ended_runs_stay_in_the_totals_after_they_expire(
    scrape: Callable[[], Samples],
    submit: Submit,
    principal: Principal,
    settings: Any,
    folds_between: bool,
) -> None:
    settings.RUN_TTL_MS = -1000
    for _ in range(3):
        cancel_run(principal=principal, run_id=submit())
        if folds_between:
            fold_totals()
    hide_runs()
    if folds_between:
        fold_totals()
    found = scrape()
    assert runs_in_status(found, "canceled") == 0
    assert metric_value(found, "runs_ended_total", template="test_stepwise", status="canceled") == 3
    assert metric_value(found, "runs_accepted_total", template="test_stepwise") == 3
    assert metric_value(found, "runs_ended_total", template="test_stepwise", status="failed") == 0


def test_folding_totals_counts_each_run_once(
    scrape: Callable[[], Samples], submit: Submit, principal: Principal
) -> None:
    run_id = submit()
    must_take("w1")
    assert fold_totals() == 2  # queued and running in one batch: the number of queued is 0 again
    cancel_run(principal=principal, run_id=run_id)
    found = scrape()
    assert (
        runs_in_status(found, "queued"),
        runs_in_status(found, "running"),
        runs_in_status(found, "canceled"),
    ) == (0, 0, 1)
    assert metric_value(found, "runs_accepted_total", template="test_stepwise") == 1
    assert metric_value(found, "runs_ended_total", template="test_stepwise", status="canceled") == 1


def test_the_queue_metrics_cover_all_workspaces(
    scrape: Callable[[], Samples], make_run: MakeRun, outsider: Principal
) -> None:
    now = datetime.now(UTC)
    make_run(created_at=now - timedelta(seconds=100))
    make_run(created_at=now - timedelta(seconds=900), workspace_id=outsider.workspace_id)
    make_run(created_at=now - timedelta(seconds=5000), ready=False)  # waits for a person
    make_run(created_at=now - timedelta(seconds=5000), status="running")  # started already
    found = scrape()
    assert metric_value(found, "queue_runs") == 3
    assert 900 <= metric_value(found, "queue_oldest_seconds") < 1500


def test_an_empty_installation_has_zero_ages(scrape: Callable[[], Samples]) -> None:
    found = scrape()
    for name in ("queue", "confirmations", "webhook_deliveries"):
        assert metric_value(found, f"{name}_oldest_seconds") == 0


def test_counting_a_long_queue_is_bounded(
    scrape: Callable[[], Samples], make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_status, "MAX_COUNTED", 2)
    for _ in range(4):
        make_run()
    assert metric_value(scrape(), "queue_runs") == 2


def test_audit_rows_without_a_seal_are_a_backlog_until_they_have_one(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    for _ in range(2):
        Sealer().seal_all()
    record(AuditEvent("run.created", "t", "run", "run_x", "t", "w", {}))
    assert metric_value(scrape(), "audit_unsealed_rows") == 1
    sealer = Sealer()
    while metric_value(scrape(), "audit_unsealed_rows"):
        sealer.seal_all()
    assert metric_value(scrape(), "audit_unsealed_oldest_seconds") == 0


def test_waiting_confirmations_are_counted_with_their_age(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    now = datetime.now(UTC)
    for status, age_s in (("waiting", 60), ("waiting", 30), ("refused", 999)):
        decision = Decision.objects.create(
            tenant_id="t",
            workspace_id="w",
            principal_id="p",
            kind="tool",
            mode="confirm",
            subject_digest="0" * 64,
            created_at=now,
        )
        Confirmation.objects.create(
            decision=decision,
            status=status,
            delivery="out_of_band",
            created_at=now - timedelta(seconds=age_s),
            expires_at=now + timedelta(hours=1),
            decided_at=None if status == "waiting" else now,
        )
    found = scrape()
    assert metric_value(found, "confirmations_waiting") == 2
    assert 60 <= metric_value(found, "confirmations_oldest_seconds") < 600


def test_an_unavailable_database_is_a_metric_and_not_an_error(
    scrape: Callable[[], Samples], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error() -> None:
        raise OperationalError("could not connect to 10.1.2.3 as admin")

    monkeypatch.setattr(metrics, "read_installation_status", raise_error)
    found = scrape()
    assert (metric_value(found, "database_up"), metric_value(found, "redis_up")) == (0, 1)


def test_a_scrape_takes_a_fixed_number_of_queries(
    principal: Principal, make_run: MakeRun, django_assert_num_queries: Callable[..., Any]
) -> None:
    for status in ("queued", "failed", "canceled", "succeeded"):
        make_run(status=status, template_id=f"template_{status}")
    with django_assert_num_queries(13):
        health_status.read_installation_status()


@pytest.mark.parametrize("headers", [{"X-Forwarded-For": "10.0.0.1"}, {"Forwarded": "for=_x"}])
def test_a_remote_caller_needs_a_token_with_the_scope(
    anonymous: httpx.Client, client_with: Callable[..., httpx.Client], headers: dict[str, str]
) -> None:
    assert refusal(anonymous.get("/metrics", headers=headers), 401)["errorCode"] == (
        "UNAUTHENTICATED"
    )
    assert "metrics:read" not in DEFAULT_SCOPES
    default_scopes = client_with(scopes=DEFAULT_SCOPES).get("/metrics", headers=headers)
    assert refusal(default_scopes, 403)["details"]["scope"] == "metrics:read"
    other_scopes = client_with(scopes=SCOPES - {"metrics:read"}).get("/metrics", headers=headers)
    assert other_scopes.status_code == 403
    collector = client_with(scopes=frozenset({"metrics:read"})).get("/metrics", headers=headers)
    assert "continuity_slots 5.0" in collector.text
