"""Whether the process lives (/healthz), can do its work (/readyz), and how much there is
(/metrics).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from redis.asyncio import Redis
from rest_framework.request import Request

from decisions.api_view import OpenView, json_answer
from decisions.errors import Forbidden
from decisions.openapi import operation
from decisions.rest import is_local_call
from decisions.threads import in_thread
from runs.health import Census, count_living_workers, take_census

CHECK_S = 3.0
HEALTH = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
_PART = {
    "type": "object",
    "required": ["ok", "ms"],
    "properties": {
        "ok": {"type": "boolean"},
        "ms": {"type": "number"},
        "reason": {"type": "string"},
    },
}
READINESS = {
    "type": "object",
    "required": ["ready", "parts"],
    "properties": {
        "ready": {"type": "boolean"},
        "parts": {
            "type": "object",
            "properties": {"database": _PART, "redis": _PART, "worker": _PART},
        },
    },
}


class LivenessView(OpenView):
    """GET /healthz."""

    @operation("getLiveness", "The process lives", tag="health", answer=HEALTH)
    async def get(self, request: Request) -> HttpResponse:
        """Answers 200 as long as the process answers at all; it asks nothing of anybody."""
        return json_answer({"status": "ok"})


class ReadinessView(OpenView):
    """GET /readyz."""

    @operation(
        "getReadiness", "Everything is there", tag="health", answer=READINESS,
        others={503: READINESS},
    )  # fmt: skip
    async def get(self, request: Request) -> HttpResponse:
        """Answers 200 when the database, Redis and at least one worker are there, else 503 and
        which part is not.
        """
        names = list(_PARTS)
        found = await asyncio.gather(*(_judge(*_PARTS[name]) for name in names))
        parts = dict(zip(names, found, strict=True))
        ready = all(part["ok"] for part in found)
        return json_answer({"ready": ready, "parts": parts}, status=200 if ready else 503)


class MetricsView(OpenView):
    """GET /metrics."""

    @operation("getMetrics", "Figures for Prometheus", tag="health", answer=None)
    async def get(self, request: Request) -> HttpResponse:
        """Figures of the whole installation in Prometheus' text format; for callers on this machine
        alone.
        """
        if not is_local_call(request):
            raise OnlyHere("The metrics are shown on this machine's own loopback address alone.")
        body = await in_thread(generate_latest, _registry)
        return HttpResponse(body, content_type=CONTENT_TYPE_LATEST)


class OnlyHere(Forbidden):
    """For callers on this machine."""

    recovery = "Let the collector ask http://127.0.0.1 on the server itself, without a proxy."


class _Away(Exception):
    """A part is not there; the text says so to anybody, so it holds no address."""


async def _judge(check: Callable[[], Awaitable[None]], hint: str) -> dict[str, Any]:
    started = time.monotonic()
    told: dict[str, Any] = {"ok": True}
    try:
        async with asyncio.timeout(CHECK_S):
            await check()
    except TimeoutError:
        told = {"ok": False, "reason": f"It did not answer within {CHECK_S:.0f} s. {hint}"}
    except _Away as away:
        told = {"ok": False, "reason": str(away)}
    except Exception as error:  # noqa: BLE001  (whatever a driver raises means that the part is away)
        told = {"ok": False, "reason": f"{type(error).__name__}. {hint}"}
    return told | {"ms": round((time.monotonic() - started) * 1000, 1)}


async def _database() -> None:
    def ask() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    await in_thread(ask)


async def _redis() -> None:
    async with Redis.from_url(settings.REDIS_URL, socket_connect_timeout=CHECK_S) as client:
        await client.ping()


async def _worker() -> None:
    if not await in_thread(count_living_workers):
        raise _Away("No worker beats: runs are accepted and wait. Start one: `manage.py worker`.")


_PARTS: dict[str, tuple[Callable[[], Awaitable[None]], str]] = {
    "database": (_database, "Is the server of DATABASE_URL up?"),
    "redis": (_redis, "Is the server of REDIS_URL up? Runs go on more slowly without it."),
    "worker": (_worker, "The database would have to tell."),
}


class _Figures(Collector):
    """Asks the database at every scrape, so that every web process tells the same."""

    def collect(self) -> Iterable[Metric]:
        census = take_census()
        runs = GaugeMetricFamily("continuity_runs", "Runs that are kept.", labels=["status"])
        for status, count in sorted(census.runs.items()):
            runs.add_metric([status], count)
        yield runs
        yield from _gauges(census)


def _gauges(census: Census) -> Iterable[Metric]:
    for name, told, value in (
        ("slots", "Runs that may run at once.", census.slots),
        ("slots_taken", "Slots that a run holds.", census.slots_taken),
        ("workers", "Worker processes that beat.", census.workers),
        ("outbox_entries", "Doorbells that no worker has answered.", census.doorbells),
        ("outbox_oldest_seconds", "Since the first of them rang.", census.oldest_doorbell_s),
    ):
        yield GaugeMetricFamily(f"continuity_{name}", told, value=value)


_registry = CollectorRegistry()
_registry.register(_Figures())
ProcessCollector(namespace="continuity_web", registry=_registry)
