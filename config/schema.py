"""The OpenAPI document (/api/schema) and Swagger UI (/api/docs), both without a token and a CDN."""

from __future__ import annotations

import asyncio
from functools import cache

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerView
from rest_framework.request import Request

from decisions.api.drf import JSONRenderer
from decisions.api.openapi import components
from decisions.api.view import PublicView


@cache
def document() -> bytes:
    """Return the OpenAPI document as JSON, generated once per process."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    schema = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    names = (
        "runs",
        "sessions",
        "artifacts",
        "tools",
        "targets",
        "webhooks",
        "continuity",
        "audit",
        "health",
    )
    schema["tags"] = [{"name": name} for name in names]
    schema["components"].setdefault("schemas", {}).update(components())
    return JSONRenderer().render(schema)


class SchemaView(PublicView):
    """GET /api/schema."""

    @extend_schema(exclude=True)
    async def get(self, request: Request) -> HttpResponse:
        """Return the OpenAPI document."""
        return HttpResponse(await asyncio.to_thread(document), content_type="application/json")


class DocsView(SpectacularSwaggerView):
    """GET /api/docs."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
