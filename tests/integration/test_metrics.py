"""GET /metrics: what an operator alerts on, for the whole installation, at the cost of a few
queries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.db.utils import OperationalError
from prometheus_client.parser import text_string_to_metric_families

from config import metrics
from decisions.audit import Deed, record
from decisions.models import Confirmation, Decision
from decisions.principals import DEFAULT_SCOPES, SCOPES, Principal
from decisions.sealer import Sealer
from runners import figures
from runs import health, published
from runs.models import OutboxEntry, Run
from runs.scheduler import hide_runs
from runs.services import cancel_run
from runs.totals import fold_totals
from runs.worker import WorkerPlace
from tests.integration.workers import must_take, register
from tests.support.rest import refusal
from tests.unit.test_fleet_files import METRIC, expressions

pytest_plugins = ["tests.support.rest_fixtures"]

MakeRun = Callable[..., Run]
Submit = Callable[..., str]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(autouse=True)
def nothing_published(request: pytest.FixtureRequest) -> None:
    """Begin with no numbers, here and in Redis."""
    if "web" in request.fixturenames:
        forget()


def forget() -> None:
    figures.take()
    published._redis._quiet_until = 0.0
    published._redis.ask(lambda redis: redis.delete(published._key("")))


@pytest.fixture
def scrape(anonymous: httpx.Client) -> Callable[[], Samples]:
    """Ask for the figures as Prometheus does."""

    def ask() -> Samples:
        answer = anonymous.get("/metrics")
        assert answer.status_code == 200, answer.text
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }

    return ask


def figure(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"continuity_{name}", frozenset(labels.items())]


def runs(samples: Samples, status: str) -> float:
    return figure(samples, "runs", template="test_stepwise", status=status)


def test_the_figures_count_runs_slots_workers_and_doorbells(
    scrape: Callable[[], Samples], make_run: MakeRun, submit: Submit
) -> None:
    make_run(status="failed")
    submit()
    found = scrape()
    assert (runs(found, "failed"), runs(found, "queued"), runs(found, "canceled")) == (1, 1, 0)
    assert (figure(found, "slots"), figure(found, "slots_taken"), figure(found, "workers")) == (
        5, 0, 0,
    )  # fmt: skip
    assert (figure(found, "outbox_entries"), figure(found, "queue_runs")) == (1, 1)
    assert (figure(found, "database_up"), figure(found, "redis_up")) == (1, 1)


@pytest.mark.parametrize("folds", [False, True])
def test_what_ended_stays_counted_when_the_runs_are_out_of_sight(
    scrape: Callable[[], Samples], submit: Submit, principal: Principal, settings: Any, folds: bool
) -> None:
    settings.RUN_TTL_MS = -1000
    for _ in range(3):
        cancel_run(principal=principal, run_id=submit())
        if folds:
            fold_totals()
    hide_runs()
    if folds:
        fold_totals()
    found = scrape()
    assert runs(found, "canceled") == 0
    assert figure(found, "runs_ended_total", template="test_stepwise", status="canceled") == 3
    assert figure(found, "runs_accepted_total", template="test_stepwise") == 3
    assert figure(found, "runs_ended_total", template="test_stepwise", status="failed") == 0


def test_runs_of_one_status_are_entered_once_however_they_are_folded(
    scrape: Callable[[], Samples], submit: Submit, principal: Principal
) -> None:
    run_id = submit()
    must_take("w1")
    assert fold_totals() == 2  # queued and running in one portion: the number of queued is 0 again
    cancel_run(principal=principal, run_id=run_id)
    found = scrape()
    assert (runs(found, "queued"), runs(found, "running"), runs(found, "canceled")) == (0, 0, 1)
    assert figure(found, "runs_accepted_total", template="test_stepwise") == 1
    assert figure(found, "runs_ended_total", template="test_stepwise", status="canceled") == 1


def test_the_queue_tells_its_length_and_its_oldest_of_all_workspaces(
    scrape: Callable[[], Samples], make_run: MakeRun, stranger: Principal
) -> None:
    now = datetime.now(UTC)
    make_run(created_at=now - timedelta(seconds=100))
    make_run(created_at=now - timedelta(seconds=900), workspace_id=stranger.workspace_id)
    make_run(created_at=now - timedelta(seconds=5000), ready=False)  # waits for a person
    make_run(created_at=now - timedelta(seconds=5000), status="running")  # began already
    found = scrape()
    assert figure(found, "queue_runs") == 3
    assert 900 <= figure(found, "queue_oldest_seconds") < 1500


def test_an_empty_installation_waits_for_nothing(scrape: Callable[[], Samples]) -> None:
    found = scrape()
    for name in ("queue", "outbox", "confirmations", "webhook_deliveries"):
        assert figure(found, f"{name}_oldest_seconds") == 0


def test_a_long_queue_costs_a_bounded_look(
    scrape: Callable[[], Samples], make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = health._QUEUE.replace(str(health.COUNTED_AT_MOST), "2")
    monkeypatch.setattr(health, "_QUEUE", limit)
    for _ in range(4):
        make_run()
    assert figure(scrape(), "queue_runs") == 2


def test_doorbells_that_nobody_hears_grow_old(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    rung = datetime.now(UTC) - timedelta(seconds=300)
    OutboxEntry.objects.create(run_id="run_x", queue="runs", rung_at=rung)
    assert 300 <= figure(scrape(), "outbox_oldest_seconds") < 900


def test_audit_rows_without_a_seal_are_a_backlog_until_they_have_one(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    for _ in range(2):
        Sealer().seal_all()
    record(Deed("run.created", "t", "run", "run_x", "t", "w", {}))
    assert figure(scrape(), "audit_unsealed_rows") == 1
    sealer = Sealer()
    while figure(scrape(), "audit_unsealed_rows"):
        sealer.seal_all()
    assert figure(scrape(), "audit_unsealed_oldest_seconds") == 0


def test_decisions_that_wait_for_a_person_are_told_with_their_age(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    now = datetime.now(UTC)
    for status, age_s in (("waiting", 60), ("waiting", 30), ("refused", 999)):
        decision = Decision.objects.create(
            tenant_id="t", workspace_id="w", principal_id="p", kind="tool", mode="confirm",
            subject_digest="0" * 64, created_at=now,
        )  # fmt: skip
        Confirmation.objects.create(
            decision=decision, status=status, delivery="out_of_band",
            created_at=now - timedelta(seconds=age_s), expires_at=now + timedelta(hours=1),
            decided_at=None if status == "waiting" else now,
        )  # fmt: skip
    found = scrape()
    assert figure(found, "confirmations_waiting") == 2
    assert 60 <= figure(found, "confirmations_oldest_seconds") < 600


def test_a_run_that_is_carried_out_leaves_its_steps_and_its_wait(
    scrape: Callable[[], Samples], submit: Submit, place: WorkerPlace
) -> None:
    submit("ok", "fail")
    place.work()
    found = scrape()  # the web is in this process here, and publishes before it answers
    for outcome in ("succeeded", "failed"):
        labels = {"template": "test_stepwise", "outcome": outcome}
        assert figure(found, "step_duration_seconds_count", **labels) == 1
        assert figure(found, "step_duration_seconds_bucket", **labels, le="+Inf") == 1
        assert figure(found, "step_duration_seconds_sum", **labels) > 0
    assert figure(found, "run_wait_seconds_count", template="test_stepwise") == 1
    assert figure(found, "workers") == 1


def test_numbers_of_several_processes_are_added_up_and_outlive_them(
    scrape: Callable[[], Samples],
) -> None:
    for _ in range(2):  # two workers, each gone after it published
        figures.runner_called("ok", 0.02)
        figures.runner_called("a reason of a later version", 99.0)
        figures.browser_launched(sandbox=True)
        figures.browser_crashed("page")
        assert published.publish()
    found = scrape()
    for le, number in (("0.01", 0), ("0.05", 2), ("+Inf", 2)):
        name = "runner_call_duration_seconds_bucket"
        assert figure(found, name, outcome="ok", le=le) == number
    assert figure(found, "runner_call_duration_seconds_count", outcome="other") == 2
    assert figure(found, "browser_launches_total", sandbox="on") == 2
    assert figure(found, "browser_crashes_total", what="page") == 2


def test_what_is_so_now_counts_for_living_workers_alone(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    register("w_here")
    for worker_id, pages in (("w_here", 3), ("w_gone", 40)):
        assert published.publish(worker_id, {"browser_pages": pages})
    assert figure(scrape(), "browser_pages") == 3


def test_a_redis_that_is_away_costs_its_figures_and_no_number(
    scrape: Callable[[], Samples], settings: Any
) -> None:
    here, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    figures.browser_launched(sandbox=True)
    found = scrape()
    assert (figure(found, "redis_up"), figure(found, "database_up")) == (0, 1)
    settings.REDIS_URL = here
    published._redis._quiet_until = 0.0
    assert figure(scrape(), "browser_launches_total", sandbox="on") == 1


def test_a_database_that_is_away_is_a_figure_and_no_failure(
    scrape: Callable[[], Samples], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError("could not connect to 10.1.2.3 as admin")

    monkeypatch.setattr(metrics, "take_census", away)
    found = scrape()
    assert (figure(found, "database_up"), figure(found, "redis_up")) == (0, 1)


def test_a_scrape_costs_few_queries_however_much_there_is(
    principal: Principal, make_run: MakeRun, django_assert_num_queries: Callable[..., Any]
) -> None:
    for status in ("queued", "failed", "canceled", "succeeded"):
        make_run(status=status, template_id=f"template_{status}")
    with django_assert_num_queries(9):
        health.take_census()


def test_no_label_holds_an_id(scrape: Callable[[], Samples], submit: Submit, place: WorkerPlace,
                              anonymous: httpx.Client) -> None:  # fmt: skip
    submit("ok")
    place.work()
    text = anonymous.get("/metrics").text
    assert not re.search(r"(run|wrk|art|sess|task|tool|target)_[0-9a-z]{20,}", text)
    assert {name for _, labels in scrape() for name, _ in labels} <= {
        "template", "status", "outcome", "le", "sandbox", "what",
    }  # fmt: skip


@pytest.mark.parametrize("headers", [{"X-Forwarded-For": "10.0.0.1"}, {"Forwarded": "for=_x"}])
def test_who_comes_from_elsewhere_needs_a_token_with_the_scope(
    anonymous: httpx.Client, client_with: Callable[..., httpx.Client], headers: dict[str, str]
) -> None:
    assert refusal(anonymous.get("/metrics", headers=headers), 401)["errorCode"] == (
        "UNAUTHENTICATED"
    )
    assert "metrics:read" not in DEFAULT_SCOPES
    plain = client_with(scopes=DEFAULT_SCOPES).get("/metrics", headers=headers)
    assert refusal(plain, 403)["details"]["scope"] == "metrics:read"
    others = client_with(scopes=SCOPES - {"metrics:read"}).get("/metrics", headers=headers)
    assert others.status_code == 403
    collector = client_with(scopes=frozenset({"metrics:read"})).get("/metrics", headers=headers)
    assert "continuity_slots 5.0" in collector.text


def test_every_metric_of_the_dashboard_and_the_rules_is_told(
    scrape: Callable[[], Samples], principal: Principal
) -> None:
    figures.step_ended("test_stepwise", "failed", 0.1)
    figures.run_taken("test_stepwise", 0.1)
    figures.runner_called("connect", 0.1)
    figures.browser_launched(sandbox=False)
    figures.browser_crashed("page")
    told = {name for name, _ in scrape()}
    asked = {name for text in expressions() for name in METRIC.findall(text)}
    assert len(asked) > 20
    assert asked <= told
