"""GET /metrics: metrics of the whole installation for Prometheus (docs/operations.md).

Every web process returns the same metrics: those read from the database, and those that all
processes published to Redis (`runs.operations.health.publisher`). If one of the two is
unavailable, its metrics are missing and `continuity_database_up` or `continuity_redis_up` is 0; the
scrape itself succeeds.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import Error, connection
from django.http import HttpResponse
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from rest_framework.request import Request
from rest_framework.views import APIView

from decisions.foundation.infra.redis import describe_redis_fault
from decisions.rest_base.drf import HasScope, is_local_call
from decisions.rest_base.openapi import operation
from decisions.rest_base.view import ApiView
from runners.metrics import METRICS, SUM, MetricSpec, Series
from runs.models import TERMINAL, RunStatus
from runs.operations.health.processes import ProcessState
from runs.operations.health.publisher import publish, read_published
from runs.operations.health.status import Backlog, InstallationStatus, read_installation_status
from runs.task_templates.registry import list_templates

log = logging.getLogger(__name__)
# The gauges that workers publish, by their name in `runs.operations.health.publisher`.
WORKER_GAUGES = {
    "browser_pages": "Pages open in workers.",
    "browser_sessions": "Named browser sessions open in workers between runs.",
    "waiting_pages": "Pages held open in workers for suspended runs.",
}
_BACKLOGS = (
    (
        "queue",
        "queue_runs",
        "Runs that a worker could claim (counted up to 10000).",
        "queue_oldest_seconds",
        "Seconds that the oldest run that has never started has waited.",
    ),
    (
        "confirmations",
        "confirmations_waiting",
        "Confirmations that wait for a person.",
        "confirmations_oldest_seconds",
        "Seconds that the oldest of them has waited.",
    ),
    (
        "deliveries",
        "webhook_deliveries_due",
        "Webhook deliveries that are due.",
        "webhook_deliveries_oldest_seconds",
        "Seconds that the oldest of them has been due.",
    ),
    (
        "unsealed",
        "audit_unsealed_rows",
        "Audit rows not sealed yet (counted up to 10000).",
        "audit_unsealed_oldest_seconds",
        "Seconds that the oldest of them has not been sealed.",
    ),
)


class IsLocalOrHasScope(HasScope):
    """Allows callers on this machine without a token, all others with the scope."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True, or refuse the call as `HasScope` does."""
        return is_local_call(request) or super().has_permission(request, view)


class MetricsView(ApiView):
    """GET /metrics."""

    scopes = {"GET": "metrics:read"}
    permission_classes = (IsLocalOrHasScope,)

    @operation(
        "getMetrics",
        "Metrics for Prometheus",
        tag="health",
        response=None,
        refusals=(401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """Returns the metrics of the whole installation in Prometheus' text format. Callers on this
        machine need no token, all others one with the scope `metrics:read`.
        """
        return HttpResponse(generate_latest(_registry), content_type=CONTENT_TYPE_LATEST)


class _InstallationCollector(Collector):
    """Reads the metrics from the database and Redis at every scrape."""

    def collect(self) -> Iterable[Metric]:
        publish()  # so that the response includes the counts of this process
        installation = _read_installation()
        yield _gauge(
            "database_up",
            "1 if the database was available at this scrape.",
            installation is not None,
        )
        if installation is not None:
            yield from _database_metrics(installation)
        published = read_published(installation.workers if installation else ())
        takes_writes = published is not None and describe_redis_fault() is None
        yield _gauge("redis_up", "1 if Redis took writes at this scrape.", takes_writes)
        if published is None:
            return
        for name, help_text in WORKER_GAUGES.items():
            yield _gauge(name, help_text, published.gauges.get(name, 0.0))
        yield from _process_metrics(published.numbers)


def _read_installation() -> InstallationStatus | None:
    try:
        return read_installation_status()
    except Error as error:
        log.warning("no metrics from the database: %s", type(error).__name__)
        connection.close()
        return None


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"continuity_{name}", help_text, value=float(value))


def _database_metrics(installation: InstallationStatus) -> Iterable[Metric]:
    yield from _runs(installation)
    yield _gauge("slots", "Runs that can run at the same time.", installation.slots)
    yield _gauge("slots_taken", "Slots that are taken by a run.", installation.slots_taken)
    yield _gauge("workers", "Live worker processes.", len(installation.workers))
    yield _processes(installation)
    yield _gauge(
        "plugin_connected", "Paired browsers that are connected.", installation.browsers_connected
    )
    for attribute, name, help_text, oldest_name, oldest_help_text in _BACKLOGS:
        backlog: Backlog = getattr(installation, attribute)
        yield _gauge(name, help_text, backlog.number)
        yield _gauge(oldest_name, oldest_help_text, backlog.oldest_s)
    yield _gauge(
        "audit_changed_triggers",
        "Triggers and rules of the audit tables that differ from Continuity's.",
        installation.changed_triggers,
    )


def _processes(installation: InstallationStatus) -> Metric:
    family = GaugeMetricFamily(
        "continuity_processes",
        "Processes by kind and state; lost and stopped ones for an hour.",
        labels=["kind", "state"],
    )
    for kind in ("web", "worker", "scheduler"):
        for state in ProcessState:
            family.add_metric([kind, state], installation.processes.get((kind, state), 0))
    return family


def _runs(installation: InstallationStatus) -> Iterable[Metric]:
    listed = GaugeMetricFamily(
        "continuity_runs",
        "Runs that the API lists: unfinished, or ended less than CONTINUITY_RUN_TTL_MS ago.",
        labels=["template", "status"],
    )
    accepted = CounterMetricFamily(
        "continuity_runs_accepted", "Runs accepted.", labels=["template"]
    )
    ended = CounterMetricFamily(
        "continuity_runs_ended", "Runs ended, by status.", labels=["template", "status"]
    )
    templates = {one.template_id for one in list_templates()} | {
        name for name, _ in installation.runs
    }
    for template in sorted(templates):
        for status in RunStatus:
            number, entered = installation.runs.get((template, status), (0, 0))
            listed.add_metric([template, status], number)
            if status == RunStatus.QUEUED:
                accepted.add_metric([template], entered)
            elif status in TERMINAL:
                ended.add_metric([template, status], entered)
    yield from (listed, accepted, ended)


def _process_metrics(numbers: Mapping[Series, float]) -> Iterable[Metric]:
    for spec in METRICS.values():
        of_spec = {series[1:]: n for series, n in numbers.items() if series[0] == spec.name}
        yield _histogram(spec, of_spec) if spec.bounds else _counter(spec, of_spec)


def _counter(spec: MetricSpec, numbers: Mapping[Series, float]) -> Metric:
    family = CounterMetricFamily(spec.name, spec.help, labels=spec.labels)
    for labels, number in sorted(numbers.items()):
        family.add_metric(labels, number)
    return family


def _histogram(spec: MetricSpec, numbers: Mapping[Series, float]) -> Metric:
    family = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
    by_labels: dict[Series, dict[str, float]] = defaultdict(dict)
    for (*labels, bucket), number in numbers.items():
        by_labels[tuple(labels)][bucket] = number
    for values, found in sorted(by_labels.items()):
        family.add_metric(values, list(_buckets(spec, found)), found.get(SUM, 0.0))
    return family


def _buckets(spec: MetricSpec, found: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    """Yield the buckets with cumulative counts, as Prometheus requires."""
    cumulative = 0.0
    for bound in (*map(str, spec.bounds), "+Inf"):
        cumulative += found.get(bound, 0.0)
        yield bound, cumulative


_registry: Any = CollectorRegistry()
_registry.register(_InstallationCollector())
ProcessCollector(namespace="continuity_web", registry=_registry)
