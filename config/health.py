"""GET /healthz (is this process alive?) and GET /readyz (can the installation do its work?)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.foundation.database.writability import takes_writes
from decisions.foundation.infra.redis import describe_redis_fault
from decisions.foundation.infra.threads import in_long_thread, in_thread
from decisions.rest_base.openapi import operation
from decisions.rest_base.view import PublicView, json_response
from runs.operations.health.status import count_live_workers, describe_audit_fault
from runs.streaming.hub import get_hub

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
            "properties": dict.fromkeys(("database", "redis", "worker", "audit", "events"), _PART),
        },
    },
}


class HealthView(PublicView):
    """A public route that probes call by the IP address of a pod, which no setting can name."""

    def perform_authentication(self, request: Request) -> None:
        """Accept the hosts of the settings, and IP addresses."""
        if not _is_ip_address(request.META.get("HTTP_HOST", "")):
            super().perform_authentication(request)


class LivenessView(HealthView):
    """GET /healthz."""

    @operation("getLiveness", "Liveness of the web process", tag="health", response=HEALTH)
    async def get(self, request: Request) -> HttpResponse:
        """Returns 200 as long as the web process responds; checks no other service."""
        return json_response({"status": "ok"})


class ReadinessView(HealthView):
    """GET /readyz."""

    @operation(
        "getReadiness",
        "Readiness of the installation",
        tag="health",
        response=READINESS,
        others={503: READINESS},
    )
    async def get(self, request: Request) -> HttpResponse:
        """Returns 200 if the database takes writes, Redis and at least one worker are available,
        audit rows are sealed within a minute in tables with unchanged triggers, and the event
        streams of this web process did not fail within a minute; else 503 with the reason of each
        part that is not.
        """
        return await _readiness(*_CHECKS)


class WebReadinessView(HealthView):
    """GET /readyz/web."""

    @operation(
        "getWebReadiness",
        "Readiness of this web process",
        tag="health",
        response=READINESS,
        others={503: READINESS},
    )
    async def get(self, request: Request) -> HttpResponse:
        """Returns 200 if this process reaches a database that takes writes and its event streams
        work; else 503. For a load balancer: without Redis or workers, web processes still serve.
        """
        return await _readiness("database", "events")


def _is_ip_address(host: str) -> bool:
    """Return whether a Host header is an IP address, with or without a port."""
    try:
        ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return re.fullmatch(r"[0-9A-Fa-f.:\[\]]+", host) is not None


async def _readiness(*names: str) -> HttpResponse:
    found = await asyncio.gather(*(_check_part(*_CHECKS[name]) for name in names))
    parts = dict(zip(names, found, strict=True))
    ready = all(part["ok"] for part in found)
    return json_response({"ready": ready, "parts": parts}, status=200 if ready else 503)


class _Unavailable(Exception):
    """A part is unavailable; the message is public, so it names no address."""


async def _check_part(check: Callable[[], Awaitable[None]], hint: str) -> dict[str, Any]:
    started = time.monotonic()
    result: dict[str, Any] = {"ok": True}
    try:
        async with asyncio.timeout(CHECK_S):
            await check()
    except TimeoutError:
        result = {"ok": False, "reason": f"No response within {CHECK_S:.0f} s. {hint}"}
    except _Unavailable as error:
        result = {"ok": False, "reason": str(error)}
    except Exception as error:  # noqa: BLE001  (any exception of a driver means: unavailable)
        result = {"ok": False, "reason": f"{type(error).__name__}. {hint}"}
    return result | {"ms": round((time.monotonic() - started) * 1000, 1)}


async def _database() -> None:
    if not await in_thread(takes_writes):
        raise _Unavailable("It takes no writes. Check whether it is meant to be read-only.")


async def _redis() -> None:
    if fault := await in_long_thread(describe_redis_fault):
        raise _Unavailable(f"{fault} Check REDIS_URL. Without it runs are slower.")


async def _worker() -> None:
    if not await in_thread(count_live_workers):
        raise _Unavailable("No worker is running, so runs wait. Start one: `manage.py worker`.")


async def _audit() -> None:
    if reason := await in_thread(describe_audit_fault):
        raise _Unavailable(reason)


async def _events() -> None:
    if reason := get_hub().fault():
        raise _Unavailable(reason)


_CHECKS: dict[str, tuple[Callable[[], Awaitable[None]], str]] = {
    "database": (_database, "Check that the server of DATABASE_URL is running."),
    "redis": (_redis, "Check the server of REDIS_URL."),
    "worker": (_worker, "Live workers are read from the database."),
    "audit": (_audit, "The seals of the audit log are read from the database."),
    "events": (_events, "See the log of the web process."),
}
