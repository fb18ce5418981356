"""Whether the process lives (/healthz) and the installation can do its work (/readyz)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from redis.asyncio import Redis
from rest_framework.request import Request

from decisions.api.openapi import operation
from decisions.api.view import PublicView, json_response
from decisions.infra.threads import in_thread
from runs.installation.health.status import count_live_workers

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


class LivenessView(PublicView):
    """GET /healthz."""

    @operation("getLiveness", "The process lives", tag="health", response=HEALTH)
    async def get(self, request: Request) -> HttpResponse:
        """Answers 200 as long as the process answers at all; it asks nothing of anybody."""
        return json_response({"status": "ok"})


class ReadinessView(PublicView):
    """GET /readyz."""

    @operation(
        "getReadiness",
        "Everything is there",
        tag="health",
        response=READINESS,
        others={503: READINESS},
    )
    async def get(self, request: Request) -> HttpResponse:
        """Answers 200 when the database, Redis and at least one worker are there, else 503 and
        which part is not.
        """
        names = list(_PARTS)
        found = await asyncio.gather(*(_judge(*_PARTS[name]) for name in names))
        parts = dict(zip(names, found, strict=True))
        ready = all(part["ok"] for part in found)
        return json_response({"ready": ready, "parts": parts}, status=200 if ready else 503)


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
    if not await in_thread(count_live_workers):
        raise _Away("No worker beats: runs are accepted and wait. Start one: `manage.py worker`.")


_PARTS: dict[str, tuple[Callable[[], Awaitable[None]], str]] = {
    "database": (_database, "Is the server of DATABASE_URL up?"),
    "redis": (_redis, "Is the server of REDIS_URL up? Runs go on more slowly without it."),
    "worker": (_worker, "The database would have to tell."),
}
