"""The OpenAPI document (/api/schema) and a page to browse it (/api/docs); both are open and need no
CDN.
"""

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
    """Return the OpenAPI document as JSON; the routes do not change while a process lives."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    made = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
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
    made["tags"] = [{"name": name} for name in names]
    made["components"].setdefault("schemas", {}).update(components())
    return JSONRenderer().render(made)


class SchemaView(PublicView):
    """GET /api/schema."""

    @extend_schema(exclude=True)
    async def get(self, request: Request) -> HttpResponse:
        """The document."""
        return HttpResponse(await asyncio.to_thread(document), content_type="application/json")


class DocsView(SpectacularSwaggerView):
    """GET /api/docs."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
