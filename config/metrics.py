"""GET /metrics: figures of the whole installation for Prometheus (docs/operations.md).

Every web process tells the same: what is in the database, and what the processes published
(`runs.installation.health.publisher`). A part that is away takes its figures with it and says so in
`continuity_database_up` or `continuity_redis_up`; a scrape never fails over it.
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

from decisions.api.drf import HasScope, is_local_call
from decisions.api.openapi import operation
from decisions.api.view import ApiView
from runners.metrics import METRICS, SUM, MetricSpec, Series
from runs.installation.health.publisher import publish, read_published
from runs.installation.health.status import Backlog, InstallationStatus, read_installation_status
from runs.models import TERMINAL, RunStatus
from runs.task_templates.registry import list_templates

log = logging.getLogger(__name__)
# What a worker says of itself as it is now, by the name it has in
# `runs.installation.health.publisher`.
NOW = {
    "browser_pages": "Pages that workers have open.",
    "browser_sessions": "Named browser sessions that workers hold open between runs.",
    "waiting_pages": "Pages that workers keep open for runs that wait for a person.",
}
_BACKLOGS = (
    (
        "queue",
        "queue_runs",
        "Runs that a worker could take (up to 10000 are counted).",
        "queue_oldest_seconds",
        "How long the oldest run that never began has waited.",
    ),
    (
        "wakeups",
        "outbox_entries",
        "Doorbells that no worker has answered.",
        "outbox_oldest_seconds",
        "Since the first of them rang.",
    ),
    (
        "confirmations",
        "confirmations_waiting",
        "Decisions that wait for a person.",
        "confirmations_oldest_seconds",
        "How long the oldest of them has waited.",
    ),
    (
        "deliveries",
        "webhook_deliveries_due",
        "Webhook messages that are due and not delivered.",
        "webhook_deliveries_oldest_seconds",
        "For how long the oldest of them has been due.",
    ),
    (
        "unsealed",
        "audit_unsealed_rows",
        "Audit rows not sealed yet (up to 10000 are counted).",
        "audit_unsealed_oldest_seconds",
        "How long the oldest of them has waited for its seal.",
    ),
)


class IsLocalOrHasScope(HasScope):
    """A caller on this machine needs no token; any other one needs the scope."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Let the call pass, or refuse it as `HasScope` does."""
        return is_local_call(request) or super().has_permission(request, view)


class MetricsView(ApiView):
    """GET /metrics."""

    scopes = {"GET": "metrics:read"}
    permission_classes = (IsLocalOrHasScope,)

    @operation(
        "getMetrics",
        "Figures for Prometheus",
        tag="health",
        response=None,
        refusals=(401, 403, 429),
    )
    def get(self, request: Request) -> HttpResponse:
        """Figures of the whole installation in Prometheus' text format: without a token for callers
        on this machine, for others with a token that has the scope `metrics:read`.
        """
        return HttpResponse(generate_latest(_registry), content_type=CONTENT_TYPE_LATEST)


class _InstallationCollector(Collector):
    """Asks the database and Redis at every scrape."""

    def collect(self) -> Iterable[Metric]:
        publish()  # what this process counted itself is in the same answer
        census = _census()
        yield _gauge("database_up", "1 when the database answered this scrape.", census is not None)
        if census is not None:
            yield from _told_by_database(census)
        published = read_published(census.workers if census else ())
        yield _gauge("redis_up", "1 when Redis answered this scrape.", published is not None)
        if published is None:
            return
        for name, told in NOW.items():
            yield _gauge(name, told, published.gauges.get(name, 0.0))
        yield from _told_by_processes(published.numbers)


def _census() -> InstallationStatus | None:
    try:
        return read_installation_status()
    except Error as error:
        log.warning("no figures of the database: %s", type(error).__name__)
        connection.close()
        return None


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(f"continuity_{name}", told, value=float(value))


def _told_by_database(census: InstallationStatus) -> Iterable[Metric]:
    yield from _runs(census)
    yield _gauge("slots", "Runs that may run at once.", census.slots)
    yield _gauge("slots_taken", "Slots that a run holds.", census.slots_taken)
    yield _gauge("workers", "Worker processes that beat.", len(census.workers))
    for part, name, told, oldest_name, oldest_told in _BACKLOGS:
        backlog: Backlog = getattr(census, part)
        yield _gauge(name, told, backlog.number)
        yield _gauge(oldest_name, oldest_told, backlog.oldest_s)


def _runs(census: InstallationStatus) -> Iterable[Metric]:
    shown = GaugeMetricFamily(
        "continuity_runs",
        "Runs that the API shows: under way, or ended not long ago.",
        labels=["template", "status"],
    )
    accepted = CounterMetricFamily(
        "continuity_runs_accepted", "Runs that were ever accepted.", labels=["template"]
    )
    ended = CounterMetricFamily(
        "continuity_runs_ended", "Runs that ever ended, by how.", labels=["template", "status"]
    )
    templates = {one.template_id for one in list_templates()} | {name for name, _ in census.runs}
    for template in sorted(templates):
        for status in RunStatus:
            number, entered = census.runs.get((template, status), (0, 0))
            shown.add_metric([template, status], number)
            if status == RunStatus.QUEUED:
                accepted.add_metric([template], entered)
            elif status in TERMINAL:
                ended.add_metric([template, status], entered)
    yield from (shown, accepted, ended)


def _told_by_processes(numbers: Mapping[Series, float]) -> Iterable[Metric]:
    for figure in METRICS.values():
        of_this = {series[1:]: n for series, n in numbers.items() if series[0] == figure.name}
        yield _histogram(figure, of_this) if figure.bounds else _counter(figure, of_this)


def _counter(figure: MetricSpec, numbers: Mapping[Series, float]) -> Metric:
    family = CounterMetricFamily(figure.name, figure.help, labels=figure.labels)
    for labels, number in sorted(numbers.items()):
        family.add_metric(labels, number)
    return family


def _histogram(figure: MetricSpec, numbers: Mapping[Series, float]) -> Metric:
    family = HistogramMetricFamily(figure.name, figure.help, labels=figure.labels)
    by_labels: dict[Series, dict[str, float]] = defaultdict(dict)
    for (*labels, bucket), number in numbers.items():
        by_labels[tuple(labels)][bucket] = number
    for values, found in sorted(by_labels.items()):
        family.add_metric(values, list(_buckets(figure, found)), found.get(SUM, 0.0))
    return family


def _buckets(figure: MetricSpec, found: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    """Yield each bucket with all that is in the ones below it too, as Prometheus counts."""
    so_far = 0.0
    for bound in (*map(str, figure.bounds), "+Inf"):
        so_far += found.get(bound, 0.0)
        yield bound, so_far


_registry: Any = CollectorRegistry()
_registry.register(_InstallationCollector())
ProcessCollector(namespace="continuity_web", registry=_registry)
